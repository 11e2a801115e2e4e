"""Converts columns of microseconds since the epoch to UTC times. Pure."""

from __future__ import annotations

from typing import Final

import polars as pl

MINUTE_US: Final = 60_000_000
HOUR_US: Final = 60 * MINUTE_US
DAY_US: Final = 24 * HOUR_US


def utc(time_us: pl.Expr) -> pl.Expr:
    """Return the instants as UTC times."""
    return pl.from_epoch(time_us, time_unit="us").dt.replace_time_zone("UTC")


def utc_floor(time_us: pl.Expr, step_us: int) -> pl.Expr:
    """Return the instants rounded down to minutes, hours or other steps."""
    return utc(time_us // step_us * step_us)
