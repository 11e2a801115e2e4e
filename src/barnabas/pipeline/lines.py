"""From records of the collector's topic to lines that are hits, dead letters or sent twice. Pure.

    records ─▶ located ─▶ classified ─┬▶ events         valid, once
               (headers)   (columns,  ├▶ dead_letters   with a reason, once
                            twice?)   └▶ file_counts    read = valid + dead letters + sent twice

What makes a record *sent twice* is the place of its line, never its text: equal lines at two
positions of a file are two hits. A collector sends a file's lines in order, from the beginning or
from some position that it had reached before, and equal keys share a partition. So within one
partition the positions of a file only rise, and one that does not exceed the highest seen there
has been sent before. That highest position per file and partition is all that has to be kept. A
topic may get more partitions: the collector spreads a file's lines over those of its beginning.

A record without the collector's headers is identified by its own place in the topic.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import polars as pl
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]

from barnabas.collector.headers import CUT, FILE, FILE_ID, LINE, POSITION
from barnabas.pipeline.access_lines import parse_lines
from barnabas.pipeline.robots import is_robot
from barnabas.pipeline.schemas import DEAD_LETTERS, EVENTS, FILES

Positions = Mapping[tuple[str, int], int]
"""The highest position that was seen of a file in a partition."""

# Java's `$`, by which this was settled, is also before a last line terminator.
_ASSET: Final = (
    r"(?i-u)\.(?:css|js|mjs|map|json|xml|rss|atom|txt|ico|png|jpe?g|gif|svg|webp|avif|bmp|woff2?|ttf"
    r"|otf|eot|mp3|mp4|webm|ogg|wav|avi|mov|pdf|zip|gz|tgz|bz2|xz|7z|rar|tar|exe|dmg|deb|rpm|iso)"
    r"(?u:\r\n|[\n\r\x{85}\x{2028}\x{2029}])?$"
)


def classified(records: pa.Table, seen: Positions) -> pl.DataFrame:
    """Every record with its place, its fields, `robot`, `page_view`, `reason` and `twice`.

    `records`: of one topic with headers, those of a partition in their order. `seen`: before them.
    """
    lines = _marked(_located(records), seen)
    fields = parse_lines(lines["value"], lines["cut"])
    page_view = (
        (pl.col("method") == "GET")
        & (pl.col("status").is_between(200, 299) | (pl.col("status") == 304))
        & ~pl.col("path").str.contains(_ASSET)
    )
    return pl.concat([lines, fields], how="horizontal").with_columns(
        page_view.fill_null(False).alias("page_view"), _robots(fields["agent"])
    )


def events(lines: pl.DataFrame) -> pl.DataFrame:
    """The valid lines of `classified`, each once, with `time_us` for `time`."""
    valid = lines.filter(~pl.col("twice") & pl.col("reason").is_null())
    return valid.select("time_us", *EVENTS.names[1:])


def dead_letters(lines: pl.DataFrame, records: pa.Table) -> pa.Table:
    """The lines that no access log has, each once: schema `DEAD_LETTERS`."""
    is_bad = lines.select(~pl.col("twice") & pl.col("reason").is_not_null()).to_series()
    places = np.flatnonzero(is_bad.to_numpy())
    letters = records.take(pa.array(places))
    for name in ("reason", "file", "line"):
        letters = letters.append_column(name, lines[name].gather(places).to_arrow())
    return letters.select(DEAD_LETTERS.names).cast(DEAD_LETTERS)


def file_counts(lines: pl.DataFrame) -> pl.DataFrame:
    """How many records of each file came to what, and how far it has been seen: schema `FILES`."""
    once, bad = ~pl.col("twice"), pl.col("reason").is_not_null()
    return (
        lines.group_by("file_id", "partition")
        .agg(
            pl.col("file").max(),
            pl.col("position").max(),
            pl.len().cast(pl.Int64).alias("read"),
            (once & ~bad).sum().cast(pl.Int64).alias("valid"),
            (once & bad).sum().cast(pl.Int64).alias("dead_letters"),
            pl.col("twice").sum().cast(pl.Int64).alias("sent_twice"),
        )
        .select(FILES.names)
    )


def _located(records: pa.Table) -> pl.DataFrame:
    """`value`, `topic`, `partition` and `offset` of the records, and the place of each line:
    `file_id`, `file`, `position` (bytes), `line` (from 1, null without headers) and `cut`."""
    headers = _Headers(records["headers"])
    frame = pl.DataFrame(
        {
            **{name: _series(records[name]) for name in ("value", "topic", "partition", "offset")},
            "_file_id": headers.texts(FILE_ID, "backslashreplace"),
            "_file": headers.texts(FILE, "replace"),
            "_position": headers.numbers(POSITION),
            "line": headers.numbers(LINE),
            "cut": headers.are_there(CUT),
        }
    )
    has_place = pl.col("_file_id").is_not_null() & pl.col("_position").is_not_null()
    own_place = pl.concat_str("topic", "partition", separator="-")
    return frame.select(
        "value",
        "topic",
        "partition",
        "offset",
        pl.when(has_place).then("_file_id").otherwise(own_place).alias("file_id"),
        pl.when(has_place).then("_position").otherwise("offset").alias("position"),
        pl.when(has_place).then("_file").alias("file"),
        "line",
        "cut",
    )


def _marked(lines: pl.DataFrame, seen: Positions) -> pl.DataFrame:
    """`lines` with `twice`."""
    known = pl.DataFrame(
        [(*key, position) for key, position in seen.items()],
        schema={"file_id": pl.String, "partition": pl.Int32, "_seen": pl.Int64},
        orient="row",
    )
    again = ~pl.struct("file_id", "partition", "position").is_first_distinct()
    before = (pl.col("position") <= pl.col("_seen")).fill_null(False)
    return (
        lines.join(known, on=["file_id", "partition"], how="left", maintain_order="left")
        .with_columns((again | before).alias("twice"))
        .drop("_seen")
    )


def _robots(agents: pl.Series) -> pl.Series:
    """Looked up once for each agent."""
    distinct = agents.unique()
    marks = pl.Series([is_robot(agent) for agent in distinct], dtype=pl.Boolean)
    frame = agents.to_frame("agent").join(
        pl.DataFrame({"agent": distinct, "robot": marks}),
        on="agent",
        how="left",
        nulls_equal=True,
        maintain_order="left",
    )
    return frame["robot"]


class _Headers:
    """The headers of records, of which the first of a name counts."""

    def __init__(self, column: pa.ChunkedArray) -> None:
        rows = column.combine_chunks()
        if isinstance(rows, pa.ChunkedArray):  # an empty column stays one
            rows = pa.concat_arrays(rows.chunks) if rows.chunks else pa.array([], rows.type)
        self._count = len(rows)
        self._owners = pc.list_parent_indices(rows).to_numpy()
        elements = rows.flatten()
        self._keys = elements.field("key")
        self._values = elements.field("value")

    def values(self, name: str) -> pa.Array:
        """A value for each record, null without one."""
        found = np.flatnonzero(pc.fill_null(pc.equal(self._keys, name), False).to_numpy(False))
        places = np.full(self._count, -1, dtype=np.int64)
        places[self._owners[found][::-1]] = found[::-1]  # the first is written last
        return self._values.take(pa.array(places, mask=places < 0))

    def texts(self, name: str, errors: str) -> pl.Series:
        values = self.values(name)
        try:
            return pl.Series(values.cast(pa.string()), dtype=pl.String)
        except pa.ArrowInvalid:  # some are not UTF-8
            texts = [
                None if each is None else each.decode("utf-8", errors) for each in _list(values)
            ]
            return pl.Series(texts, dtype=pl.String)

    def numbers(self, name: str) -> pl.Series:
        texts = self.texts(name, "replace")
        return texts.str.strip_chars().cast(pl.Int64, strict=False)

    def are_there(self, name: str) -> pl.Series:
        return pl.Series(self.values(name).is_valid(), dtype=pl.Boolean)


def _list(values: pa.Array) -> list[Any]:
    return list(values.to_pylist())


def _series(column: pa.ChunkedArray) -> pl.Series:
    series = pl.from_arrow(column)
    assert isinstance(series, pl.Series)
    return series
