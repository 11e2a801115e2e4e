"""Sessions: what one visitor does until thirty minutes of silence.

A visitor is an address together with a user agent. A session is an interval of a visitor's time,
and a hit is the smallest one. Joining intervals that are less than `SILENCE` apart gives the same
sessions whether the hits come all at once, in any number of portions, or in any order:

    joined(a ∪ b) = joined(joined(a) ∪ b)

So the table of sessions is all the state there is. A session goes on in a later run because its
interval is joined with later hits; nothing has to be closed, no timer fires, no watermark drops a
late line, and a line from the year 2099 closes no one's session for good. `open` only says that
the newest hit of all is not yet thirty minutes later than the session's last.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

SILENCE_SECONDS = 30 * 60

# Where a page view stands among a visitor's: times have seconds only, and equal keys share a
# partition, in which offsets are the order of the log.
_ORDER = "struct<time: timestamp, partition: int, offset: bigint>"

SESSIONS = f"""
    client string, agent string, robot boolean, start timestamp, end timestamp,
    length_seconds bigint, hits bigint, pages bigint, bytes bigint, entry string, exit string,
    referrer string, bounce boolean, open boolean, utc_offset_minutes int,
    entry_order {_ORDER}, exit_order {_ORDER}, day date
"""
"""`entry` and `exit` are the paths of the first and last page, `referrer` the host that led to the
first; all null without a page. `bounce`: one page and no more. `day` (UTC) is that of `end`."""


def single_hits(events: DataFrame) -> DataFrame:
    """Each hit as the shortest of sessions."""
    order = F.struct("time", "partition", "offset").cast(_ORDER)
    page = F.col("page_view")
    return events.select(
        "client",
        "agent",
        "robot",
        F.col("time").alias("start"),
        F.col("time").alias("end"),
        F.lit(1).cast("bigint").alias("hits"),
        page.cast("bigint").alias("pages"),
        F.coalesce("bytes", F.lit(0)).alias("bytes"),
        F.when(page, F.col("path")).alias("entry"),
        F.when(page, F.col("path")).alias("exit"),
        F.when(page, host_of(F.col("referrer"))).alias("referrer"),
        "utc_offset_minutes",
        F.when(page, order).alias("entry_order"),
        F.when(page, order).alias("exit_order"),
    )


def joined_sessions(before: DataFrame, hits: DataFrame, newest_s: int) -> DataFrame:
    """Sessions `before` joined with `hits` (of `single_hits`): schema `SESSIONS`.

    `newest_s`: seconds since the epoch of the newest hit of all, which tells what is open.
    """
    parts = before.select(*hits.columns).unionByName(hits)
    visitor = Window.partitionBy("client", "agent")
    in_time = visitor.orderBy("start", "end")
    heard = F.max("end").over(in_time.rowsBetween(Window.unboundedPreceding, -1))
    silence = F.unix_seconds("start") - F.unix_seconds(heard)
    first = heard.isNull() | (silence >= SILENCE_SECONDS)
    number = F.sum(first.cast("int")).over(
        in_time.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    )
    return _described(_added(parts.withColumn("_number", number)), newest_s)


def _added(parts: DataFrame) -> DataFrame:
    return parts.groupBy("client", "agent", "_number").agg(
        F.bool_or("robot").alias("robot"),
        F.min("start").alias("start"),
        F.max("end").alias("end"),
        F.sum("hits").alias("hits"),
        F.sum("pages").alias("pages"),
        F.sum("bytes").alias("bytes"),
        F.min_by("entry", "entry_order").alias("entry"),
        F.max_by("exit", "exit_order").alias("exit"),
        F.min_by("referrer", "entry_order").alias("referrer"),
        F.max("utc_offset_minutes").alias("utc_offset_minutes"),
        F.min("entry_order").alias("entry_order"),
        F.max("exit_order").alias("exit_order"),
    )


def _described(sessions: DataFrame, newest_s: int) -> DataFrame:
    length = F.unix_seconds("end") - F.unix_seconds("start")
    silent = F.lit(newest_s) - F.unix_seconds("end")
    return sessions.select(
        "client",
        "agent",
        "robot",
        "start",
        "end",
        length.alias("length_seconds"),
        "hits",
        "pages",
        "bytes",
        "entry",
        "exit",
        "referrer",
        (F.col("pages") == 1).alias("bounce"),
        (silent < SILENCE_SECONDS).alias("open"),
        "utc_offset_minutes",
        "entry_order",
        "exit_order",
        F.to_date("end").alias("day"),
    )


def host_of(url: Column) -> Column:
    """The host that a referrer names, without port and leading "www."; null where there is none."""
    host = F.regexp_extract(url, r"^[A-Za-z][A-Za-z0-9+.-]*://(?:[^/?#@]*@)?([^/?#:]+)", 1)
    plain = F.regexp_replace(F.lower(host), r"^www\.", "")
    return F.when(plain != "", plain)
