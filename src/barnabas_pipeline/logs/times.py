"""Converts the times in log lines to instants. Pure.

Times in syslog have no year. The latest year is chosen in which the line would not be dated after
its receipt, with a tolerance of one day for clock differences: a line from 31 December that is
received in January is from the previous year. Similarly, a time without a date is taken as its
latest occurrence before the line was received, with a tolerance of one hour.
"""

from __future__ import annotations

import re
from typing import Final

import polars as pl

_DAY_US: Final = 86_400_000_000
_HOUR_US: Final = 3_600_000_000
_YEARS: Final = 5  # 29 February is at most this far back, except around 2100
# Names that mean the same offset everywhere. Other names, such as IST and CST, are ambiguous.
OFFSETS: Final[dict[str, str]] = {
    **dict.fromkeys(("UTC", "GMT", "UCT", "WET"), "+0000"),
    **dict.fromkeys(("CET", "MEZ", "WEST"), "+0100"),
    **dict.fromkeys(("CEST", "MESZ", "EET"), "+0200"),
    **dict.fromkeys(("EEST", "MSK"), "+0300"),
    "JST": "+0900",
    "AEST": "+1000",
    "AEDT": "+1100",
    "NZST": "+1200",
    "NZDT": "+1300",
    "EST": "-0500",
    "EDT": "-0400",
    "CDT": "-0500",
    "MDT": "-0600",
    "PDT": "-0700",
    "PST": "-0800",
    "MST": "-0700",
}


def instants(texts: pl.Series, received_us: pl.Series, form: str, zone: str) -> pl.Series:
    """Return microseconds since the epoch, or null for an impossible time.

    `form`: the format, in the notation of `strptime`. `zone`: the zone of times without an offset.
    """
    if form.endswith("%Z"):
        return _named(texts, received_us, form.removesuffix("%Z").rstrip(), zone)
    # A fraction may have any length; other separators become a decimal point.
    chrono = re.sub(r"[,.:]?%f", "%.f", form).replace("%d", "%e").replace("%H", "%k")
    chrono = chrono.replace("%I", "%l")
    clean = texts.str.replace_all(" +", " ").str.replace(r",([0-9]{1,9})", ".$1")
    clean = clean.str.replace(r":([0-9]{1,9})$", ".$1") if form.endswith(":%f") else clean
    clean = clean.str.replace(r"Z$", "+0000") if form.endswith("%z") else clean
    if "%Y" in form or "%y" in form:
        return _parsed(clean, chrono, zone)
    received = received_us.cast(pl.Datetime("us", "UTC")).dt.convert_time_zone(zone)
    if "%d" not in form:
        return _of_the_day(clean, received, chrono, zone)
    latest_us = received_us + _DAY_US
    year = received.dt.year()
    found = pl.Series([None] * len(texts), dtype=pl.Int64)
    # Also try next year, because a line dated January may be received in December.
    for back in range(-1, _YEARS):
        dated = (year - back).cast(pl.String) + " " + clean
        parsed = _parsed(dated, "%Y " + chrono, zone)
        # Use the latest possible year. In years without a 29 February, that day is null.
        found = found.zip_with(found.is_not_null() | (parsed > latest_us).fill_null(True), parsed)
    return found


def _of_the_day(texts: pl.Series, received: pl.Series, form: str, zone: str) -> pl.Series:
    form = f"%Y-%m-%d {form}"
    today = _parsed(received.dt.strftime("%Y-%m-%d ") + texts, form, zone)
    before = received.dt.offset_by("-1d")
    yesterday = _parsed(before.dt.strftime("%Y-%m-%d ") + texts, form, zone)
    latest_us = received.dt.convert_time_zone("UTC").cast(pl.Int64) + _HOUR_US
    return today.zip_with((today <= latest_us).fill_null(True), yesterday)


def _named(texts: pl.Series, received_us: pl.Series, form: str, zone: str) -> pl.Series:
    """Convert times that end with a zone name or an offset to instants."""
    parts = texts.str.extract_groups(r"^(?<local>.*?) ?(?<zone>[A-Z]+|[+-][0-9:]+)$")
    names = parts.struct.field("zone")
    digits = names.str.replace(":", "").str.pad_end(5, "0")
    offsets = digits.zip_with(
        names.str.contains("^[+-]"),
        names.replace_strict(OFFSETS, default=None, return_dtype=pl.String),
    )
    local = parts.struct.field("local")
    in_zone = instants(local, received_us, form, zone)
    in_utc = instants(local, received_us, form, "UTC")
    minutes = offsets.str.slice(1, 2).cast(pl.Int64) * 60 + offsets.str.slice(3, 2).cast(pl.Int64)
    minutes = minutes.zip_with(offsets.str.starts_with("+").fill_null(True), -minutes)
    return (in_utc - minutes * 60_000_000).zip_with(offsets.is_not_null(), in_zone)


def _parsed(texts: pl.Series, form: str, zone: str) -> pl.Series:
    if form.endswith("%z"):
        times = texts.str.to_datetime(form, time_unit="us", strict=False, time_zone="UTC")
        return times.cast(pl.Int64)
    local = texts.str.to_datetime(form, time_unit="us", strict=False)
    if zone != "UTC":
        # A time in a repeated hour means the first one; a time that the clock skips is impossible.
        local = local.dt.replace_time_zone(zone, ambiguous="earliest", non_existent="null")
        return local.dt.convert_time_zone("UTC").cast(pl.Int64)
    return local.cast(pl.Int64)
