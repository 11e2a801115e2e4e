"""Tables that only count: traffic per minute, pages, referrers and status classes.

Each is a sum by its keys, so a table after a batch is the table before it plus the counts of the
batch: `added`. All times are UTC; `utc_offset_minutes` tells the log's own clock, for pictures of
the day as its visitors lived it.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from barnabas.pipeline.schema import names
from barnabas.pipeline.sessions import host_of

TRAFFIC = """
    minute timestamp, utc_offset_minutes int, hits bigint, robot_hits bigint, pages bigint,
    robot_pages bigint, client_errors bigint, server_errors bigint, bytes bigint, day date
"""
PAGES = """
    path string, views bigint, robot_views bigint, errors bigint, bytes bigint, day date
"""
"""A path with at least one page view (`views`, robots' included) or one answer 4xx or 5xx."""
REFERRERS = """
    host string, hits bigint, robot_hits bigint, pages bigint, day date
"""
"""Hits that name a referring host; assets are mostly referred to by the site itself."""
STATUSES = """
    hour timestamp, status int, class string, hits bigint, robot_hits bigint, day date
"""

_COUNTS = frozenset(
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
    )
)


def traffic(events: DataFrame) -> DataFrame:
    """Schema `TRAFFIC` of these hits."""
    return _counted(
        events.select(
            F.date_trunc("minute", "time").alias("minute"),
            "utc_offset_minutes",
            *_hits(),
            _count(F.col("page_view")).alias("pages"),
            _count(F.col("page_view") & F.col("robot")).alias("robot_pages"),
            _count(F.col("status").between(400, 499)).alias("client_errors"),
            _count(F.col("status").between(500, 599)).alias("server_errors"),
            _bytes(),
            _day(),
        ),
        TRAFFIC,
    )


def pages(events: DataFrame) -> DataFrame:
    """Schema `PAGES` of these hits."""
    error = F.col("status") >= 400
    told = events.where(F.col("path").isNotNull() & (F.col("page_view") | error))
    return _counted(
        told.select(
            "path",
            _count(F.col("page_view")).alias("views"),
            _count(F.col("page_view") & F.col("robot")).alias("robot_views"),
            _count(error).alias("errors"),
            _bytes(),
            _day(),
        ),
        PAGES,
    )


def referrers(events: DataFrame) -> DataFrame:
    """Schema `REFERRERS` of these hits."""
    named = events.select("*", host_of(F.col("referrer")).alias("host")).where("host is not null")
    return _counted(
        named.select("host", *_hits(), _count(F.col("page_view")).alias("pages"), _day()),
        REFERRERS,
    )


def statuses(events: DataFrame) -> DataFrame:
    """Schema `STATUSES` of these hits."""
    return _counted(
        events.select(
            F.date_trunc("hour", "time").alias("hour"),
            "status",
            F.concat(F.substring(F.col("status").cast("string"), 1, 1), F.lit("xx")).alias("class"),
            *_hits(),
            _day(),
        ),
        STATUSES,
    )


def added(before: DataFrame, counts: DataFrame, schema: str) -> DataFrame:
    """A table after a batch: what there was, plus what the batch counted."""
    return _counted(before.unionByName(counts), schema)


def _counted(rows: DataFrame, schema: str) -> DataFrame:
    columns = names(schema)
    keys = [name for name in columns if name not in _COUNTS]
    sums = [F.sum(name).alias(name) for name in columns if name in _COUNTS]
    return rows.groupBy(*keys).agg(*sums).select(*columns)


def _hits() -> tuple[Column, Column]:
    return F.lit(1).cast("bigint").alias("hits"), _count(F.col("robot")).alias("robot_hits")


def _count(condition: Column) -> Column:
    return condition.cast("bigint")


def _bytes() -> Column:
    return F.coalesce("bytes", F.lit(0)).alias("bytes")


def _day() -> Column:
    return F.to_date("time").alias("day")
