"""Determines the place of a record's line, and whether the record was sent twice. Pure.

Whether a record counts as *sent twice* depends on the place of its line, never on its text, because
equal lines at two positions of a file are two hits. A collector sends a file's lines in order, from
the start or from an earlier position, and equal keys share a partition. Within a partition,
therefore, a file's positions only increase, and a line at or below the highest position seen so far
has been sent before. This highest position is the only state kept for each file and partition. If
partitions are added to a topic, the collector continues to use the partitions that existed when the
first line of a file was sent.

A record without the collector's headers is identified by its own place in the topic. A replayed
dead letter is identified by the place of the dead letter, because the line itself has already been
seen.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import polars as pl
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]

from barnabas_collector.dead_letter_headers import REPLAYED
from barnabas_collector.headers import CUT, FIELDS, FILE, FILE_ID, LINE, POSITION, SYSLOG_CUT
from barnabas_pipeline.schemas import DEAD_LETTERS, FILES

Positions = Mapping[tuple[str, int], int]
"""The highest position seen in each file, by file id and partition."""

_REPLAYED: Final = r"^(?<of>\S+ [0-9]+) (?<at>[0-9]+)$"
_COUNTS: Final = ("read", "valid", "dead_letters", "sent_twice")


def locate(records: pa.Table) -> pl.DataFrame:
    """Extract each record's `value`, `topic`, `partition` and `offset`, and the place of its line:
    `file_id`, `file`, `position` (bytes), `line` (1-based, null without headers), `cut`, and
    W3C's `columns`, if any."""
    headers = Headers(records["headers"])
    frame = pl.DataFrame(
        {
            **{name: _series(records[name]) for name in ("value", "topic", "partition", "offset")},
            # Escapes keep ids distinct that are not UTF-8; the file's name is only for display.
            "_file_id": headers.texts(FILE_ID, "backslashreplace"),
            "_file": headers.texts(FILE, "replace"),
            "_position": headers.numbers(POSITION),
            "line": headers.numbers(LINE),
            "cut": headers.are_there(CUT) | headers.are_there(SYSLOG_CUT),
            "columns": headers.texts(FIELDS, "backslashreplace"),
            "_replayed": headers.texts(REPLAYED, "replace"),
        }
    ).with_columns(pl.col("_replayed").str.extract_groups(_REPLAYED).alias("_letter"))
    letter, letter_at = pl.col("_letter").struct["of"], pl.col("_letter").struct["at"]
    letter_at = letter_at.cast(pl.Int64, strict=False)
    # A replayed dead letter carries its line's headers, but is identified by its own place.
    is_letter = letter_at.is_not_null()
    has_place = pl.col("_file_id").is_not_null() & pl.col("_position").is_not_null()
    own_place = pl.concat_str("topic", "partition", separator="-")
    return frame.select(
        "value",
        "topic",
        "partition",
        "offset",
        pl.when(is_letter)
        .then(letter)
        .when(has_place)
        .then("_file_id")
        .otherwise(own_place)
        .alias("file_id"),
        pl.when(is_letter)
        .then(letter_at)
        .when(has_place)
        .then("_position")
        .otherwise("offset")
        .alias("position"),
        pl.when(has_place).then("_file").alias("file"),
        "line",
        "cut",
        "columns",
    )


def mark_sent_twice(lines: pl.DataFrame, seen: Positions) -> pl.DataFrame:
    """Add `twice`, which is true if the line is at or below a position already seen."""
    known = pl.DataFrame(
        [(*key, position) for key, position in seen.items()],
        schema={"file_id": pl.String, "partition": pl.Int32, "_seen": pl.Int64},
        orient="row",
    )
    # Either the line occurs twice in this batch, or an earlier batch has reached its position.
    again = ~pl.struct("file_id", "partition", "position").is_first_distinct()
    before = (pl.col("position") <= pl.col("_seen")).fill_null(False)
    return (
        lines.join(known, on=["file_id", "partition"], how="left", maintain_order="left")
        .with_columns((again | before).alias("twice"))
        .drop("_seen")
    )


def dead_letters(lines: pl.DataFrame, records: pa.Table) -> pa.Table:
    """Return the rejected lines without duplicates, in schema `DEAD_LETTERS`.

    If records contain several lines, the column `record` contains the number of a line's record,
    and `letter`, unless it is null, replaces the record's value.
    """
    is_bad = lines.select(~pl.col("twice") & pl.col("reason").is_not_null()).to_series()
    places = np.flatnonzero(is_bad.to_numpy())
    is_part = "record" in lines.columns
    letters = records.take(
        (lines["record"].gather(places) if is_part else pl.Series(places)).to_arrow()
    )
    if is_part:
        column = letters.schema.get_field_index("value")
        part = lines["letter"].gather(places).to_arrow(compat_level=pl.CompatLevel.oldest())
        value = pc.coalesce(part.cast(pa.binary()), letters["value"])
        letters = letters.set_column(column, "value", value)
    for name in ("reason", "file", "line"):
        letters = letters.append_column(name, lines[name].gather(places).to_arrow())
    return letters.select(DEAD_LETTERS.names).cast(DEAD_LETTERS)


def file_counts(lines: pl.DataFrame) -> pl.DataFrame:
    """Count each file's records by outcome, and return the counts and positions in schema
    `FILES`."""
    once, bad = ~pl.col("twice"), pl.col("reason").is_not_null()
    return (
        lines.group_by("file_id", "partition")
        .agg(
            # A renamed file has two names; the choice must not depend on the order of rows.
            pl.col("file").max(),
            pl.col("position").max(),
            pl.len().cast(pl.Int64).alias("read"),
            (once & ~bad).sum().cast(pl.Int64).alias("valid"),
            (once & bad).sum().cast(pl.Int64).alias("dead_letters"),
            pl.col("twice").sum().cast(pl.Int64).alias("sent_twice"),
        )
        .select(FILES.names)
    )


def merge_files(parts: pl.DataFrame) -> pl.DataFrame:
    """Merge the rows of the `files` table into one row per file and partition."""
    return (
        parts.group_by("file_id", "partition")
        .agg(pl.col("file", "position").max(), pl.col(_COUNTS).sum())
        .select(FILES.names)
    )


class Headers:
    """The headers of records. If a record has two headers with the same name, the first one is
    used.
    """

    def __init__(self, column: pa.ChunkedArray) -> None:
        rows = column.combine_chunks()
        if isinstance(rows, pa.ChunkedArray):  # an empty column remains empty
            rows = pa.concat_arrays(rows.chunks) if rows.chunks else pa.array([], rows.type)
        self._count = len(rows)
        self._owners = pc.list_parent_indices(rows).to_numpy()
        elements = rows.flatten()
        self._keys = elements.field("key")
        self._values = elements.field("value")

    def values(self, name: str) -> pa.Array:
        """Return the header's value for each record, or null if a record lacks the header."""
        found = np.flatnonzero(pc.fill_null(pc.equal(self._keys, name), False).to_numpy(False))
        places = np.full(self._count, -1, dtype=np.int64)
        places[self._owners[found][::-1]] = found[::-1]  # the first is written last
        return self._values.take(pl.Series(places).replace(-1, None).to_arrow())

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
