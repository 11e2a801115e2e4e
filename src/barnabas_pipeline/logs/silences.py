"""Finds busy components that have fallen silent. Pure.

A component is silent if, at its former rate, it would have written dozens of lines since its last
line. A component that logs only during system startup is not considered silent, because it was not
busy for long enough. A silence is measured up to the newest line of the same format, so the end of
a log is not a silence.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final, NamedTuple

import polars as pl

_LEAST_LINES: Final = 20
_LEAST_MISSING: Final = 30
_LEAST_SILENCE_S: Final = 600
_LEAST_SHARE: Final = 0.2  # the busy share of the log's time


class Silence(NamedTuple):
    format: str
    component: str
    lines: int
    last: datetime
    silent: timedelta
    usual_an_hour: float


def silences(components: pl.DataFrame) -> list[Silence]:
    """Return the silences in the merged table `components`, the most missing lines first."""
    ends = components.group_by("format").agg(
        pl.col("first").min().alias("begin"), pl.col("last").max().alias("end")
    )
    each = (
        components.filter(pl.col("component").is_not_null())
        .group_by("format", "component")
        .agg(pl.col("lines").sum(), pl.col("first").min(), pl.col("last").max())
        .join(ends, on="format")
    )
    # Use at least a minute, in case all of a component's lines have the same time.
    busy_s = _seconds(pl.col("last") - pl.col("first")).clip(lower_bound=60)
    silent_s = _seconds(pl.col("end") - pl.col("last"))
    missing = pl.col("lines") / busy_s * silent_s
    found = each.filter(
        (pl.col("lines") >= _LEAST_LINES)
        & (missing >= _LEAST_MISSING)
        & (silent_s >= _LEAST_SILENCE_S)
        & (busy_s >= _LEAST_SHARE * _seconds(pl.col("end") - pl.col("begin")))
    ).select(
        "format",
        "component",
        "lines",
        "last",
        (pl.col("end") - pl.col("last")).alias("silent"),
        (pl.col("lines") / busy_s * 3600).alias("usual"),
        missing.alias("missing"),
    )
    ordered = found.sort("missing", "format", "component", descending=[True, False, False])
    return [Silence(*row) for row in ordered.drop("missing").iter_rows()]


def _seconds(duration: pl.Expr) -> pl.Expr:
    return duration.dt.total_microseconds() / 1e6
