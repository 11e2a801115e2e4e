"""Computes the sessions and the count tables from events. Pure.

As with access logs, adding the counts of two batches yields the counts of both together, whatever
the order in which events arrive. An event that a device sent days late therefore ends up in the
session and the week in which it happened.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import polars as pl

from barnabas_pipeline import places
from barnabas_pipeline.behaviour import sessions
from barnabas_pipeline.instants import DAY_US, MINUTE_US, utc_floor
from barnabas_pipeline.tracking.schemas import MERGED

LATE_US: Final = 10 * MINUTE_US
"""An event is late if it was received more than this long after it happened."""

PHONE: Final = "phone"
TABLET: Final = "tablet"
DESKTOP: Final = "desktop"
_WIDEST_PHONE: Final = 600
_WIDEST_TABLET: Final = 1_100

ERROR: Final = "error"
"""The name of the event that reports an error in a script."""

_MONDAY_SHIFT_DAYS: Final = 3  # 1970-01-01 was a Thursday


def merge(name: str, rows: pl.DataFrame) -> pl.DataFrame:
    """Merge the parts of a table in `MERGED` into rows."""
    if name == "sessions":
        return sessions.join(rows)
    if name == "files":
        return places.merge_files(rows)
    names = MERGED[name].names
    sums = [each for each in names if rows.schema[each] in (pl.Int64, pl.Float64)]
    keys = [each for each in names if each not in sums]
    return rows.group_by(keys).agg(pl.col(sums).sum()).select(names)


def count_events(events: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """Return the merged parts of all tables except `files`.

    `events`: the columns of `EVENTS` except `time` and `received`, with `time_us` and `received_us`
    in their place.
    """
    events = events.with_columns(
        (pl.col("time_us") // DAY_US).cast(pl.Int32).cast(pl.Date).alias("day")
    )
    return {
        name: merge(name, count(events).select(MERGED[name].names))
        for name, count in _TABLES.items()
    }


def count_repeated(events: pl.DataFrame) -> pl.DataFrame:
    """Return repeated events as a part of the table `arrivals`."""
    zero = pl.lit(0, pl.Int64)
    rows = events.select(
        pl.col("time").dt.date().alias("day"),
        zero.alias("events"),
        zero.alias("late"),
        _one().alias("repeated"),
    )
    return merge("arrivals", rows)


def _sessions(events: pl.DataFrame) -> pl.DataFrame:
    # It is unknown which of the events without a visitor belong together.
    hits = events.filter(pl.col("visitor").is_not_null()).with_columns(
        pl.col("visitor").alias("client"),
        pl.lit(None, pl.String).alias("agent"),
        pl.lit(0, pl.Int64).alias("bytes"),
        pl.col("referrer").alias("host"),
        pl.lit(0, pl.Int32).alias("utc_offset_minutes"),
    )
    return sessions.single_hits(hits)


def _traffic(events: pl.DataFrame) -> pl.DataFrame:
    is_error = pl.col("name") == ERROR
    return events.select(
        utc_floor(pl.col("time_us"), MINUTE_US).alias("minute"),
        pl.lit(0, pl.Int32).alias("utc_offset_minutes"),
        _one().alias("hits"),
        _count(pl.col("robot")).alias("robot_hits"),
        _count(pl.col("page_view")).alias("pages"),
        _count(pl.col("page_view") & pl.col("robot")).alias("robot_pages"),
        _count(is_error).alias("client_errors"),
        pl.lit(0, pl.Int64).alias("server_errors"),
        pl.lit(0, pl.Int64).alias("bytes"),
        "day",
    )


def _pages(events: pl.DataFrame) -> pl.DataFrame:
    return events.filter("page_view").select(
        "host",
        "path",
        _one().alias("views"),
        _count(pl.col("robot")).alias("robot_views"),
        "day",
    )


def _names(events: pl.DataFrame) -> pl.DataFrame:
    value = pl.when(~pl.col("robot")).then(pl.col("value").fill_null(0.0)).otherwise(0.0)
    return events.select(
        "name",
        _one().alias("events"),
        _count(pl.col("robot")).alias("robot_events"),
        value.alias("value"),
        "day",
    )


def _campaigns(events: pl.DataFrame) -> pl.DataFrame:
    named = pl.any_horizontal(pl.col("source", "medium", "campaign").is_not_null())
    return events.filter(_is_view() & named).select(
        "source", "medium", "campaign", _one().alias("views"), "day"
    )


def _devices(events: pl.DataFrame) -> pl.DataFrame:
    return events.filter(_is_view()).select(device(), "language", _one().alias("views"), "day")


def device() -> pl.Expr:
    """Return the column `device`, which is derived from the width of the column `screen`."""
    width = pl.col("screen").str.extract(r"^(\d+)x").cast(pl.Int64)
    return (
        pl.when(width <= _WIDEST_PHONE)
        .then(pl.lit(PHONE))
        .when(width <= _WIDEST_TABLET)
        .then(pl.lit(TABLET))
        .when(width.is_not_null())
        .then(pl.lit(DESKTOP))
        .alias("device")
    )


def _visitor_weeks(events: pl.DataFrame) -> pl.DataFrame:
    days = pl.col("time_us") // DAY_US
    monday = days - (days + _MONDAY_SHIFT_DAYS) % 7
    people = events.filter(pl.col("visitor").is_not_null() & ~pl.col("robot"))
    return people.select(
        "visitor", monday.cast(pl.Int32).cast(pl.Date).alias("week"), _one().alias("events")
    )


def _arrivals(events: pl.DataFrame) -> pl.DataFrame:
    is_late = pl.col("received_us") - pl.col("time_us") > LATE_US
    return events.select(
        "day",
        _one().alias("events"),
        _count(is_late).alias("late"),
        pl.lit(0, pl.Int64).alias("repeated"),
    )


def _is_view() -> pl.Expr:
    return pl.col("page_view") & ~pl.col("robot")


def _one() -> pl.Expr:
    return pl.lit(1, pl.Int64)


def _count(condition: pl.Expr) -> pl.Expr:
    return condition.cast(pl.Int64)


_TABLES: Final[Mapping[str, Callable[[pl.DataFrame], pl.DataFrame]]] = {
    "sessions": _sessions,
    "traffic": _traffic,
    "pages": _pages,
    "names": _names,
    "campaigns": _campaigns,
    "devices": _devices,
    "visitor_weeks": _visitor_weeks,
    "arrivals": _arrivals,
}
