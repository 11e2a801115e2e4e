"""From records of the collector's topic to hits and dead letters: pure functions of DataFrames.

    records ─▶ identified ─▶ classified ─┬▶ events         valid, once
               (headers)     (columns,   ├▶ dead_letters   with a reason, once
                              twice?)    └▶ file_counts    read = valid + dead letters + sent twice

What makes a record *sent twice* is the place of its line, never its text: equal lines at two
positions of a file are two hits. A collector sends a file's lines in order, from the beginning or
from some position that it had reached before, and equal keys share a partition. So within one
partition the positions of a file only rise, and one that does not exceed the highest seen there
has been sent before. That highest position per file and partition is all that has to be kept. A
topic may get more partitions: the collector spreads a file's lines over those of its beginning.

A record without the collector's headers is identified by its own place in the topic.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from barnabas.pipeline.access_log import parse
from barnabas.pipeline.headers import (
    CUT,
    FILE,
    FILE_ID,
    LINE,
    POSITION,
    REASON,
    SOURCE_OFFSET,
    SOURCE_PARTITION,
    SOURCE_TOPIC,
)
from barnabas.pipeline.robots import is_robot
from barnabas.pipeline.schema import names

EVENTS = """
    time timestamp, utc_offset_minutes int, client string, ident string, user string,
    method string, path string, query string, protocol string, status int, bytes bigint,
    referrer string, agent string, robot boolean, page_view boolean,
    file string, file_id string, position bigint, topic string, partition int, offset bigint
"""
DEAD_LETTERS = """
    reason string, key binary, value binary, headers array<struct<key: string, value: binary>>,
    file string, line bigint, topic string, partition int, offset bigint
"""
FILES = """
    file_id string, file string, partition int, position bigint,
    read bigint, valid bigint, dead_letters bigint, sent_twice bigint
"""

_AS_IT_CAME = ("key", "value", "headers")
_RECORD = (*_AS_IT_CAME, "topic", "partition", "offset")
_FIRST, _LAST = 1, -1  # of the headers of a name, as Spark counts elements

_ASSET = (
    r"(?i)\.(?:css|js|mjs|map|json|xml|rss|atom|txt|ico|png|jpe?g|gif|svg|webp|avif|bmp|woff2?|ttf"
    r"|otf|eot|mp3|mp4|webm|ogg|wav|avi|mov|pdf|zip|gz|tgz|bz2|xz|7z|rar|tar|exe|dmg|deb|rpm|iso)$"
)


def identified(records: DataFrame) -> DataFrame:
    """Records of `format("barnabas")` with headers, plus the place of each line.

    Adds `file_id`, `file`, `position` (bytes), `line` (from 1, null without headers) and `cut`.
    """
    own_place = F.concat_ws("-", "topic", F.col("partition").cast("string"))
    has_place = F.col("_file_id").isNotNull() & F.col("_position").isNotNull()
    return records.select(
        *_RECORD,
        _text_header(FILE_ID).alias("_file_id"),
        _text_header(POSITION).try_cast("bigint").alias("_position"),
        _text_header(FILE).alias("_file"),
        _text_header(LINE).try_cast("bigint").alias("line"),
        _header(CUT).isNotNull().alias("cut"),
    ).select(
        *_RECORD,
        F.when(has_place, F.col("_file_id")).otherwise(own_place).alias("file_id"),
        F.when(has_place, F.col("_position")).otherwise(F.col("offset")).alias("position"),
        F.when(has_place, F.make_valid_utf8("_file")).alias("file"),
        "line",
        "cut",
    )


def classified(records: DataFrame, files: DataFrame) -> DataFrame:
    """Every record with its parsed columns, `robot`, `page_view`, `reason` and `twice`.

    `records`: the source's schema with headers. `files`: table `files` before these records.
    """
    lines = parse(_marked(identified(records), files))
    path = F.coalesce("path", F.lit(""))
    page_view = (
        (F.col("method") == "GET")
        & (F.col("status").between(200, 299) | (F.col("status") == 304))
        & ~path.rlike(_ASSET)
    )
    # What came is kept for dead letters only: most of a batch need not be held twice.
    is_bad = F.col("reason").isNotNull()
    return lines.select(
        *(F.when(is_bad, F.col(name)).alias(name) for name in _AS_IT_CAME),
        *(name for name in lines.columns if name not in _AS_IT_CAME),
        is_robot(F.col("agent")).alias("robot"),
        F.coalesce(page_view, F.lit(False)).alias("page_view"),
    )


def events(lines: DataFrame) -> DataFrame:
    """The valid lines of `classified`, each once: schema `EVENTS`."""
    valid = lines.where(~F.col("twice") & F.col("reason").isNull())
    return valid.select(*names(EVENTS))


def dead_letters(lines: DataFrame) -> DataFrame:
    """The lines of `classified` that no access log has, each once: schema `DEAD_LETTERS`."""
    return lines.where(~F.col("twice") & F.col("reason").isNotNull()).select(*names(DEAD_LETTERS))


def file_counts(lines: DataFrame) -> DataFrame:
    """How many records of each file came to what, and how far it has been seen: schema `FILES`."""
    once = ~F.col("twice")
    bad = F.col("reason").isNotNull()
    return (
        lines.groupBy("file_id", "partition")
        .agg(
            F.max("file").alias("file"),
            F.max("position").alias("position"),
            F.count("*").alias("read"),
            F.count_if(once & ~bad).alias("valid"),
            F.count_if(once & bad).alias("dead_letters"),
            F.count_if("twice").alias("sent_twice"),
        )
        .select(*names(FILES))
    )


def added_files(before: DataFrame, counts: DataFrame) -> DataFrame:
    """Table `files` after a batch: `file_counts` added to what was there."""
    return (
        before.unionByName(counts)
        .groupBy("file_id", "partition")
        .agg(
            F.max("file").alias("file"),
            F.max("position").alias("position"),
            *(F.sum(name).alias(name) for name in ("read", "valid", "dead_letters", "sent_twice")),
        )
        .select(*names(FILES))
    )


def dead_letter_records(letters: DataFrame) -> DataFrame:
    """`dead_letters` as records to write: the line as it came, its headers, and where and why."""
    about = {
        REASON: F.col("reason"),
        SOURCE_TOPIC: F.col("topic"),
        SOURCE_PARTITION: F.col("partition").cast("string"),
        SOURCE_OFFSET: F.col("offset").cast("string"),
    }
    added = F.array(
        *(
            F.struct(F.lit(name).alias("key"), value.cast("binary").alias("value"))
            for name, value in about.items()
        )
    )
    own = F.coalesce("headers", F.array().cast("array<struct<key: string, value: binary>>"))
    return letters.select("key", "value", F.concat(own, added).alias("headers"))


def dead_letter_sources(records: DataFrame) -> DataFrame:
    """Where the records of the dead-letter topic came from: `topic`, `partition`, `offset`.

    Of those that were dead letters before, the last time: what is added stands behind the rest.
    """
    return records.select(
        _text_header(SOURCE_TOPIC, _LAST).alias("topic"),
        _text_header(SOURCE_PARTITION, _LAST).try_cast("int").alias("partition"),
        _text_header(SOURCE_OFFSET, _LAST).try_cast("bigint").alias("offset"),
    )


def _marked(lines: DataFrame, files: DataFrame) -> DataFrame:
    """`lines` with `twice`."""
    seen = files.select("file_id", "partition", F.col("position").alias("_seen"))
    same_place = Window.partitionBy("file_id", "position").orderBy("partition", "offset")
    again = F.row_number().over(same_place) > 1
    before = F.coalesce(F.col("position") <= F.col("_seen"), F.lit(False))
    return (
        lines.join(F.broadcast(seen), ["file_id", "partition"], "left")
        .select("*", (again | before).alias("twice"))
        .drop("_seen")
    )


def _header(name: str, which: int = _FIRST) -> Column:
    """The value of one of the headers of that name, null without one."""
    named = F.filter("headers", lambda header: header["key"] == name)
    return F.try_element_at(named, F.lit(which))["value"]


def _text_header(name: str, which: int = _FIRST) -> Column:
    return _header(name, which).cast("string")
