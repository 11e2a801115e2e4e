"""Finds bursts: minutes in which a template occurs far more often than usual. Pure.

The usual rate is the mean over a template's other minutes, including minutes without lines. Counts
of rare events follow a Poisson distribution, so the bound is the mean plus six standard deviations
plus one line. A burst must also have at least ten lines and at least five times the usual rate.
Adjacent minutes form one burst.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final, NamedTuple

import polars as pl

_LEAST_LINES: Final = 10
_LEAST_TIMES: Final = 5
_DEVIATIONS: Final = 6
_LEAST_SPAN_MINUTES: Final = 10
_MINUTE: Final = timedelta(minutes=1)


class Burst(NamedTuple):
    template: str
    begin: datetime
    minutes: int
    lines: int
    usual_a_minute: float

    @property
    def end(self) -> datetime:
        return self.begin + self.minutes * _MINUTE

    @property
    def excess(self) -> float:
        """The number of lines in excess of the usual number."""
        return self.lines - self.minutes * self.usual_a_minute


def bursts(template_minutes: pl.DataFrame, templates: pl.DataFrame) -> list[Burst]:
    """Return all bursts, the greatest excess first.

    Bursts are computed from the merged tables `template_minutes` and `templates`. If the lines of a
    format cover less than ten minutes, no usual rate is known, so the format has no bursts.
    """
    counts = template_minutes.join(templates.select("template", "format"), on="template")
    span = counts.group_by("format").agg(
        ((pl.col("minute").max() - pl.col("minute").min()).dt.total_minutes() + 1).alias("span")
    )
    totals = counts.group_by("template").agg(pl.col("lines").sum().alias("total"))
    rows = counts.join(span, on="format").join(totals, on="template")
    usual = (pl.col("total") - pl.col("lines")) / (pl.col("span") - 1)
    bound = usual + _DEVIATIONS * usual.sqrt() + 1
    peaks = rows.filter(
        (pl.col("span") >= _LEAST_SPAN_MINUTES)
        & (pl.col("lines") >= _LEAST_LINES)
        & (pl.col("lines") > bound)
        & (pl.col("lines") >= _LEAST_TIMES * usual)
    ).sort("template", "minute")
    is_next = (pl.col("minute") - pl.col("minute").shift(1) == _MINUTE) & (
        pl.col("template") == pl.col("template").shift(1)
    )
    joined = (
        peaks.with_columns((~is_next.fill_null(False)).cum_sum().alias("burst"))
        .group_by("burst", "template", "span", "total")
        .agg(
            pl.col("minute").min().alias("begin"),
            pl.len().alias("minutes"),
            pl.col("lines").sum(),
        )
    )
    found = [
        Burst(
            row["template"],
            row["begin"],
            row["minutes"],
            row["lines"],
            (row["total"] - row["lines"]) / max(1, row["span"] - row["minutes"]),
        )
        for row in joined.iter_rows(named=True)
    ]
    return sorted(found, key=lambda each: (-each.excess, each.begin, each.template))
