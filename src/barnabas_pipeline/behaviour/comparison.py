"""Compares the latest days with the days before them, usually the last week with the week before.

If the log covers less than a fortnight, each period is half of the whole days; if it covers less
than two days, each period is half of the time.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

import polars as pl

from barnabas_pipeline.behaviour.visits import SessionFigures, session_figures

_DAY: Final = timedelta(days=1)
_MOST_DAYS: Final = 7
_MISSING_SHARE: Final = 0.05  # share of the time that may be missing at the start


class Period(NamedTuple):
    """One of the two periods compared; `begin` and `end` are in the log's local time."""

    begin: datetime
    end: datetime
    people: SessionFigures
    hits: int
    robot_hits: int
    errors: int
    size_bytes: int

    @property
    def robot_share(self) -> float:
        return self.robot_hits / self.hits if self.hits else 0.0

    @property
    def error_share(self) -> float:
        return self.errors / self.hits if self.hits else 0.0


class Comparison(NamedTuple):
    """Two consecutive periods of equal length."""

    length: timedelta
    last: Period
    before: Period


def compare(traffic: pl.DataFrame, people: pl.DataFrame) -> Comparison | None:
    """Compare the two periods in the table `traffic` and in people's sessions. Returns None for a
    log of less than two minutes."""
    if not traffic.height:
        return None
    first, last = traffic["minute"].min(), traffic["minute"].max()
    assert isinstance(first, datetime) and isinstance(last, datetime)
    end = last + timedelta(minutes=1)
    length = _length(end - first)
    if length < timedelta(minutes=1):
        return None
    middle = end - length
    # Apply the newest offset to both periods, even if the clocks changed between them.
    offset = timedelta(
        minutes=int(traffic.filter(pl.col("minute") == last)["utc_offset_minutes"][0])
    )

    def period(begin: datetime, end: datetime) -> Period:
        rows = traffic.filter(pl.col("minute").is_between(begin, end, closed="left"))
        sessions = people.filter(pl.col("start").is_between(begin, end, closed="left"))
        sums = {name: int(rows[name].sum()) for name in ("hits", "robot_hits", "bytes")}
        errors = int(rows["client_errors"].sum()) + int(rows["server_errors"].sum())
        return Period(
            _local(begin, offset),
            _local(end, offset),
            session_figures(sessions),
            sums["hits"],
            sums["robot_hits"],
            errors,
            sums["bytes"],
        )

    return Comparison(length, period(middle, end), period(middle - length, middle))


def _length(span: timedelta) -> timedelta:
    days = int(span / _DAY * (1 + _MISSING_SHARE) / 2)
    if days:
        return min(days, _MOST_DAYS) * _DAY
    return span / 2


def _local(at: datetime, offset: timedelta) -> datetime:
    return (at.astimezone(UTC) + offset).replace(tzinfo=None)
