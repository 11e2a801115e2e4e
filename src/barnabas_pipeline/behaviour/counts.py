"""Computes count tables: traffic per minute, pages, referrers, user agents and others. Pure.

Each table contains sums, grouped by the table's keys. After a batch, `add_up` of the previous table
and the batch's counts yields the new table. All times are in UTC. `utc_offset_minutes` is the
offset of the log's clock, which is needed to draw days in the log's local time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

import polars as pl

from barnabas_pipeline.behaviour.agents import parse_agents
from barnabas_pipeline.behaviour.response_times import bucket_bounds
from barnabas_pipeline.behaviour.schemas import (
    AGENTS,
    HOSTS,
    METHODS,
    MISSING,
    PAGES,
    REFERRERS,
    RESPONSE_TIMES,
    STATUSES,
    TRAFFIC,
)
from barnabas_pipeline.instants import HOUR_US, MINUTE_US, utc_floor

_COUNTS: Final = frozenset(
    (
        "hits",
        "robot_hits",
        "pages",
        "robot_pages",
        "client_errors",
        "server_errors",
        "views",
        "robot_views",
        "errors",
        "bytes",
        "lines",
    )
)
_SCHEMAS: Final = {
    "traffic": TRAFFIC,
    "pages": PAGES,
    "referrers": REFERRERS,
    "statuses": STATUSES,
    "agents": AGENTS,
    "missing": MISSING,
    "hosts": HOSTS,
    "methods": METHODS,
    "response_times": RESPONSE_TIMES,
}


def add_up(rows: pl.DataFrame, names: list[str]) -> pl.DataFrame:
    """Add up the rows of a table, grouped by the columns in `names` that are not counts."""
    sums = [name for name in names if name in _COUNTS]
    keys = [name for name in names if name not in _COUNTS]
    return rows.group_by(keys).agg(pl.col(sums).sum()).select(names)


def traffic(events: pl.DataFrame) -> pl.DataFrame:
    """Return these hits in schema `TRAFFIC`, without adding them up."""
    return events.select(
        utc_floor(pl.col("time_us"), MINUTE_US).alias("minute"),
        "utc_offset_minutes",
        *_hits(),
        _count(pl.col("page_view")).alias("pages"),
        _count(pl.col("page_view") & pl.col("robot")).alias("robot_pages"),
        _count(pl.col("status").is_between(400, 499)).alias("client_errors"),
        _count(pl.col("status").is_between(500, 599)).alias("server_errors"),
        # The log contains a hyphen if no body was sent.
        pl.col("bytes").fill_null(0),
        "day",
    )


def pages(events: pl.DataFrame) -> pl.DataFrame:
    """Return these hits in schema `PAGES`, without adding them up."""
    error = pl.col("status") >= 400
    # Assets have rows only if they failed, because failures need attention.
    counted = events.filter(pl.col("path").is_not_null() & (pl.col("page_view") | error))
    return counted.select(
        "path",
        _count(pl.col("page_view")).alias("views"),
        _count(pl.col("page_view") & pl.col("robot")).alias("robot_views"),
        _count(error).alias("errors"),
        pl.col("bytes").fill_null(0),
        "day",
    )


def referrers(events: pl.DataFrame) -> pl.DataFrame:
    """Return these hits in schema `REFERRERS`, without adding them up. The hits must have the
    column `host`.
    """
    named = events.filter(pl.col("host").is_not_null())
    return named.select("host", *_hits(), _count(pl.col("page_view")).alias("pages"), "day")


def statuses(events: pl.DataFrame) -> pl.DataFrame:
    """Return these hits in schema `STATUSES`, without adding them up."""
    status_class = (pl.col("status") // 100).cast(pl.String) + "xx"
    return events.select(
        utc_floor(pl.col("time_us"), HOUR_US).alias("hour"),
        "status",
        status_class.alias("class"),
        *_hits(),
        "day",
    )


def agents(events: pl.DataFrame) -> pl.DataFrame:
    """Return these hits in schema `AGENTS`, added up so that each user agent is parsed once."""
    page = _count(pl.col("page_view")).alias("pages")
    columns = ("agent", "robot", "day", page, pl.col("bytes").fill_null(0))
    one = pl.lit(1, pl.Int64).alias("hits")
    rows = events.select(*columns, one)
    each = rows.group_by("agent", "robot", "day").agg(pl.col("hits", "pages", "bytes").sum())
    names = parse_agents(each.select("agent", "robot").unique())
    # A hit without a user agent has null as its agent, which also needs a name.
    return each.join(names, on=["agent", "robot"], how="left", nulls_equal=True)


def missing(events: pl.DataFrame) -> pl.DataFrame:
    """Return these hits in schema `MISSING`, without adding them up."""
    found = events.filter((pl.col("status") == 404) & pl.col("path").is_not_null())
    # Remove the query and fragment, because with them, a page can have any number of URLs.
    referrer = pl.col("referrer").str.replace(r"[?#].*$", "").alias("referrer")
    return found.select("path", referrer, *_hits(), "day")


def hosts(events: pl.DataFrame) -> pl.DataFrame:
    """Return these hits in schema `HOSTS`, without adding them up."""
    named = events.filter(pl.col("virtual_host").is_not_null())
    return named.select(
        "virtual_host",
        *_hits(),
        _count(pl.col("page_view")).alias("pages"),
        _count(pl.col("page_view") & pl.col("robot")).alias("robot_pages"),
        _count(pl.col("status") >= 400).alias("errors"),
        pl.col("bytes").fill_null(0),
        "day",
    )


def methods(events: pl.DataFrame) -> pl.DataFrame:
    """Return these hits in schema `METHODS`, without adding them up."""
    return events.select("method", "protocol", *_hits(), "day")


def response_times(events: pl.DataFrame) -> pl.DataFrame:
    """Return these hits in schema `RESPONSE_TIMES`, without adding them up."""
    timed = events.filter(pl.col("response_time_us").is_not_null() & pl.col("path").is_not_null())
    bounds = bucket_bounds(timed["response_time_us"]).alias("from_us")
    return timed.select("path", bounds, *_hits(), "day")


def formats(lines: pl.DataFrame) -> pl.DataFrame:
    """Count the valid lines returned by `classify`, without duplicates, in schema `FORMATS`."""
    valid = lines.filter(~pl.col("twice") & pl.col("reason").is_null())
    return valid.group_by("format").agg(pl.len().cast(pl.Int64).alias("lines"))


_TABLES: Final[Mapping[str, Callable[[pl.DataFrame], pl.DataFrame]]] = MappingProxyType(
    {
        "traffic": traffic,
        "pages": pages,
        "referrers": referrers,
        "statuses": statuses,
        "agents": agents,
        "missing": missing,
        "hosts": hosts,
        "methods": methods,
        "response_times": response_times,
    }
)


def count_hits(events: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """Return the counts of these hits for each table in `_TABLES`."""
    return {name: add_up(table(events), _SCHEMAS[name].names) for name, table in _TABLES.items()}


def _hits() -> tuple[pl.Expr, pl.Expr]:
    return pl.lit(1, pl.Int64).alias("hits"), _count(pl.col("robot")).alias("robot_hits")


def _count(condition: pl.Expr) -> pl.Expr:
    return condition.cast(pl.Int64)
