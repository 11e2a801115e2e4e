"""Parses many log lines into columns, with Polars.

Each line gets the first format that it matches. A line that matches none is `raw`, with its whole
text as the message; a malformed line, or a line with an impossible time, has a `reason`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

import polars as pl

from barnabas_formats.format import RAW, Format
from barnabas_formats.levels import BY_NAME, BY_SEVERITY
from barnabas_formats.pattern import Pattern
from barnabas_pipeline.logs.times import instants
from barnabas_pipeline.texts import texts

SCHEMA: Final = pl.Schema(
    {
        "time_us": pl.Int64,
        "format": pl.String,
        "host": pl.String,
        "component": pl.String,
        "level": pl.String,
        "pid": pl.String,
        "thread": pl.String,
        "message": pl.String,
        "more": pl.String,
        "reason": pl.String,
    }
)
_EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001 - its text gets a Z
_PLAIN: Final = ("host", "component", "pid", "thread")


def parse_lines(
    values: pl.Series, is_cut: pl.Series, received_us: pl.Series, formats: Sequence[Format]
) -> pl.DataFrame:
    """Return a row of `SCHEMA` for each of `values` (binary); in a row with a `reason`, all else is
    null.

    `is_cut`: true if a value is only the beginning of a longer line. `received_us`: the record's
    time, in microseconds since the epoch.
    """
    # Only the first line is matched; others, such as a stack trace, belong to it.
    parts = texts(values).str.splitn("\n", 2)
    lines = pl.DataFrame(
        {
            "value": values,
            "is_cut": is_cut,
            "received_us": received_us,
            "head": parts.struct.field("field_0").str.strip_chars_end("\r"),
            "more": parts.struct.field("field_1"),
        }
    ).with_row_index("row")
    bad = _bad(lines)
    left = lines.join(bad, on="row", how="anti")
    found = [bad]
    for each, pattern in _patterns(formats):
        if not left.height:
            break
        fitting = _fitting(left, each, pattern)
        if fitting.height:
            found.append(fitting)
            left = left.join(fitting, on="row", how="anti")
    found.append(_raw(left))
    columns = ["row", *SCHEMA.names()]
    return pl.concat([each.select(columns) for each in found]).sort("row").drop("row")


def _bad(lines: pl.DataFrame) -> pl.DataFrame:
    reason = (
        pl.when(pl.col("value").is_null())
        .then(pl.lit("the record has no value"))
        .when(pl.col("is_cut"))
        .then(pl.lit("the line is too long, only its beginning was sent"))
        .when(pl.col("head").is_null())
        .then(pl.lit("the line is not UTF-8"))
    )
    bad = lines.select("row", reason.alias("reason")).filter(pl.col("reason").is_not_null())
    return _filled(bad)


def _patterns(formats: Sequence[Format]) -> list[tuple[Format, Pattern]]:
    """Return all patterns in the order in which they are tried."""
    pairs = [(each, pattern) for each in formats for pattern in each.patterns]
    return sorted(pairs, key=lambda pair: pair[1].is_loose)


def _fitting(lines: pl.DataFrame, of: Format, pattern: Pattern) -> pl.DataFrame:
    groups = pl.col("head").str.extract_groups(pattern.regex).alias("groups")
    rows = lines.select("row", "received_us", "more", groups).unnest("groups")
    rows = rows.filter(pl.col("message").is_not_null())
    if not rows.height:
        return _filled(rows.select("row"))
    if "time" in pattern.columns:
        times = instants(rows["time"], rows["received_us"], pattern.time_form, of.zone)
    else:
        times = rows["received_us"]
    level = pl.lit(None, pl.String)
    if "level" in pattern.columns:
        level = _level_of(pl.col("level"))
    # Syslog names no level: the severity is in the priority (RFC 5424, 6.2.1).
    elif "priority" in pattern.columns:
        level = _level_of_priority(pl.col("priority"))
    plain = [
        # RFC 5424 has a hyphen for a missing field (NILVALUE).
        pl.when(pl.col(name) != "-").then(pl.col(name)).alias(name)
        for name in _PLAIN
        if name in pattern.columns
    ]
    rows = rows.with_columns(
        times.alias("time_us"),
        level.alias("level"),
        pl.lit(of.name).alias("format"),
        pl.when(times.is_null())
        .then(pl.lit(f"the line names a time that never was ({of.name})"))
        .alias("reason"),
        *plain,
    )
    rows = _filled(rows)
    others = [name for name in SCHEMA.names() if name != "reason"]
    is_good = pl.col("reason").is_null()
    return rows.with_columns(pl.when(is_good).then(pl.col(name)).alias(name) for name in others)


def _raw(lines: pl.DataFrame) -> pl.DataFrame:
    rows = lines.select(
        "row",
        "more",
        pl.col("received_us").alias("time_us"),
        pl.lit(RAW).alias("format"),
        pl.col("head").alias("message"),
    )
    return _filled(rows)


def _filled(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the rows with null in the columns of `SCHEMA` that they lack."""
    missing = [pl.lit(None, kind).alias(n) for n, kind in SCHEMA.items() if n not in rows.columns]
    return rows.with_columns(missing).select("row", *SCHEMA.names())


def _level_of(name: pl.Expr) -> pl.Expr:
    """Return the level that a line's `name` stands for, or null if it is not a level."""
    return name.str.to_uppercase().replace_strict(BY_NAME, default=None, return_dtype=pl.String)


def _level_of_priority(priority: pl.Expr) -> pl.Expr:
    """Return the level of a syslog message, given by the number in its first angle brackets."""
    severity = priority.cast(pl.Int32, strict=False) % 8
    return severity.replace_strict(BY_SEVERITY, default=None, return_dtype=pl.String)


def values(row: Mapping[str, Any], received_us: int) -> dict[str, object]:
    """Return what a row of `SCHEMA` says, as samples and `barnabas formats try` show it.

    `received_us`: the record's time, which is not shown as the line's.
    """
    time_us = row["time_us"]
    shown = {name: value for name, value in row.items() if value is not None and name != "time_us"}
    if time_us is None or time_us == received_us:
        return shown
    at = _EPOCH + timedelta(microseconds=time_us)
    text = at.isoformat(timespec="microseconds" if time_us % 1_000_000 else "seconds")
    return {"time": f"{_trimmed(text)}Z", **shown}


def _trimmed(time: str) -> str:
    return time.rstrip("0") if "." in time else time
