"""Computes retention: how many of a week's new visitors were active in later weeks. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, timedelta
from typing import Final, NamedTuple

import polars as pl

MOST_WEEKS: Final = 12
_WEEK: Final = timedelta(weeks=1)


class Cohort(NamedTuple):
    """The visitors who were first active in the week that begins on the Monday `week`.

    `active[n]`: how many of these visitors were active n weeks later, so `active[0]` is the size of
    the cohort. The list ends at the latest with the newest week of all visitors.
    """

    week: date
    active: list[int]

    @property
    def visitors(self) -> int:
        return self.active[0]


def cohorts(weeks: pl.DataFrame) -> list[Cohort]:
    """Return the newest cohorts, in chronological order.

    `weeks`: the table `visitor_weeks`, merged.
    """
    if not weeks.height:
        return []
    first = pl.col("week").min().over("visitor").alias("first")
    counted = (
        weeks.select("visitor", "week", first)
        .group_by("first", "week")
        .agg(pl.len().alias("visitors"))
    )
    return cohorts_of({(first, week): count for first, week, count in counted.iter_rows()})


def cohorts_of(by_week: Mapping[tuple[date, date], int]) -> list[Cohort]:
    """Return the newest cohorts, in chronological order.

    `by_week`: visitors by the week in which they were first active, and a week in which they were
    active.
    """
    last = max(week for _, week in by_week)
    begins = sorted({first for first, _ in by_week})[-MOST_WEEKS:]
    return [
        Cohort(
            begin,
            [
                by_week.get((begin, begin + number * _WEEK), 0)
                for number in range(min((last - begin) // _WEEK + 1, MOST_WEEKS))
            ],
        )
        for begin in begins
    ]
