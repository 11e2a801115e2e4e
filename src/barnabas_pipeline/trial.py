"""Parses a file's lines as the jobs do, and returns the result for each record."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import polars as pl

from barnabas_collector.line_cutter import Line
from barnabas_collector.w3c_columns import columns_in
from barnabas_formats.continuation import RecordStart
from barnabas_formats.format import RAW, Format
from barnabas_formats.user_formats import of_kind
from barnabas_pipeline.behaviour import access_lines
from barnabas_pipeline.file_pass import Origin, open_text
from barnabas_pipeline.logs import log_lines, log_records
from barnabas_pipeline.texts import text_of, texts


class Tried(NamedTuple):
    """A record's number in the file, and its content, as returned by `values`."""

    number: int
    values: dict[str, object]

    @property
    def format(self) -> str | None:
        """The matching format, if any."""
        name = self.values["format"]
        return name if isinstance(name, str) and name != RAW else None


class Trial(NamedTuple):
    """The formats of one kind; if `only` is set, no other format is tried."""

    kind: str
    own: tuple[Format, ...]
    known: tuple[Format, ...]
    only: str | None = None

    def try_file(self, path: str) -> Iterator[Tried]:
        """Yield the results for a file's records, with one portion of the file in memory at a time.

        Raises `ConfigError` if the file cannot be read.
        """
        rule = None if self.kind == "access" else RecordStart(self.own)
        with open_text(path, Origin("", is_start=rule)) as (_, portions):
            for lines, columns in columns_in(portions):
                yield from self.try_lines(lines, columns)

    def try_lines(
        self, lines: Sequence[Line], columns: Sequence[bytes | None] | None = None
    ) -> list[Tried]:
        """Return the results for some records. `columns`: W3C's columns of each line."""
        fields = pl.Series(columns or [None] * len(lines), dtype=pl.Binary)
        values = pl.Series([line.text for line in lines], dtype=pl.Binary)
        is_cut = pl.Series([line.is_cut for line in lines], dtype=pl.Boolean)
        found = (
            self._access(values, is_cut, texts(fields))
            if self.kind == "access"
            else self._system(values, is_cut)
        )
        return [
            Tried(line.number, _shown(line, each))
            for line, rows in zip(lines, found, strict=True)
            for each in rows
        ]

    def _own(self) -> tuple[Format, ...]:
        return of_kind(self.own, self.kind)

    def _system(self, values: pl.Series, is_cut: pl.Series) -> list[list[dict[str, object]]]:
        """Return the rows for each line: a single row, or a row for each log record in the line."""
        # No line can have this time; use it to mark lines without one.
        received_us = time.time_ns() // 1_000_000 * 1_000 + 1
        formats = tuple(
            each for each in (*self._own(), *self.known) if self.only in (None, each.name)
        )
        received = pl.repeat(received_us, len(values), dtype=pl.Int64, eager=True)
        parsed = log_records.parse_texts(values, is_cut, received, formats)
        shown = parsed.drop("record", "item", "letter").iter_rows(named=True)
        found: list[list[dict[str, object]]] = [[] for _ in values]
        for record, row in zip(parsed["record"], shown, strict=True):
            found[record].append(log_lines.values(row, received_us))
        return found

    def _access(
        self, values: pl.Series, is_cut: pl.Series, columns: pl.Series
    ) -> list[list[dict[str, object]]]:
        found: list[list[dict[str, object]]] = []
        rows = access_lines.parse_lines(values, is_cut, self._own(), columns)
        for row in rows.iter_rows(named=True):
            if row["reason"] is not None:
                found.append([{"reason": row["reason"]}])
            elif self.only not in (None, row["format"]):
                found.append([{"format": RAW}])
            else:
                found.append([access_lines.values(row)])
        return found


def _shown(line: Line, found: dict[str, object]) -> dict[str, object]:
    """Return a line's fields, or the line itself if no format matches."""
    text = text_of(line.text)
    if "reason" in found:
        return {"format": None, **found, "message": text}
    if found["format"] == RAW:
        return {"format": RAW, "message": text}
    return found
