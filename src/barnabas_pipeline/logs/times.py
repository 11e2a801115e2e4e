"""Converts the times in log lines to instants. Pure.

Syslog's times have no year. The year is the latest in which the line is not later than its receipt,
with a tolerance of one day for clock differences: a line of 31 December that is received in January
belongs to the previous year.
"""

from __future__ import annotations

import re
from typing import Final

import polars as pl

_DAY_US: Final = 86_400_000_000
_YEARS: Final = 5  # the 29th of February is at most this far back, except around 2100


def instants(texts: pl.Series, received_us: pl.Series, form: str, zone: str) -> pl.Series:
    """Return microseconds since the epoch, or null for an impossible time.

    `form`: in the letters of `strptime`. `zone`: the zone of times without an offset.
    """
    # A fraction of any length, and a decimal point for other separators.
    chrono = re.sub(r"[,.:]?%f", "%.f", form).replace("%d", "%e").replace("%H", "%k")
    clean = texts.str.replace_all(" +", " ").str.replace(r",([0-9]{1,9})", ".$1")
    clean = clean.str.replace(r":([0-9]{1,9})$", ".$1") if form.endswith(":%f") else clean
    clean = clean.str.replace(r"Z$", "+0000") if form.endswith("%z") else clean
    if "%Y" in form or "%y" in form:
        return _parsed(clean, chrono, zone)
    latest_us = received_us + _DAY_US
    year = received_us.cast(pl.Datetime("us", "UTC")).dt.convert_time_zone(zone).dt.year()
    found = pl.Series([None] * len(texts), dtype=pl.Int64)
    # Next year's, too: it may be January here and December where the line was received.
    for back in range(-1, _YEARS):
        dated = (year - back).cast(pl.String) + " " + clean
        parsed = _parsed(dated, "%Y " + chrono, zone)
        # The latest possible year counts. In years without a 29th of February that day is null.
        found = found.zip_with(found.is_not_null() | (parsed > latest_us).fill_null(True), parsed)
    return found


def _parsed(texts: pl.Series, form: str, zone: str) -> pl.Series:
    if form.endswith("%z"):
        times = texts.str.to_datetime(form, time_unit="us", strict=False, time_zone="UTC")
        return times.cast(pl.Int64)
    local = texts.str.to_datetime(form, time_unit="us", strict=False)
    if zone != "UTC":
        # A repeated hour counts as the first; an hour that a clock skips is impossible.
        local = local.dt.replace_time_zone(zone, ambiguous="earliest", non_existent="null")
        return local.dt.convert_time_zone("UTC").cast(pl.Int64)
    return local.cast(pl.Int64)
