"""Reads a snapshot of the tables with Arrow, all as of the same batch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
import pyarrow.dataset as ds  # type: ignore[import-untyped]

from barnabas_pipeline.layout import Layout
from barnabas_pipeline.tables import Tables


class Snapshot:
    """The tables of a directory as of the last complete batch."""

    def __init__(self, directory: Path, layout: Layout) -> None:
        self._layout = layout
        self._tables = Tables(directory, layout)
        self.control = self._tables.control()

    def frame(self, name: str) -> pl.DataFrame:
        """Return a table with its parts merged."""
        if self.control is None:
            parts = self._layout.all[name].empty_table()
        else:
            parts = self._tables.parts(name, self.control.versions[name])
        if name in self._layout.growing:
            frame = pl.from_arrow(parts)
            assert isinstance(frame, pl.DataFrame)
            return frame
        return self._layout.merge(name, parts)

    def rows(self, name: str, columns: list[str]) -> pa.Table:
        """Return these columns of a merged table."""
        return to_arrow(self.frame(name).select(columns))

    def dataset(self, name: str) -> ds.Dataset | None:
        """Return a table whose rows are written once, without reading it; None before the first
        batch."""
        if self.control is None:
            return None
        return self._tables.dataset(name, self.control.versions[name])

    def some(
        self, name: str, number: int, columns: list[str], condition: pc.Expression
    ) -> list[dict[str, Any]]:
        """Return up to `number` rows of a table whose rows are written once.

        Reads file by file, and no more files than needed.
        """
        found: list[dict[str, Any]] = []
        dataset = self.dataset(name)
        for fragment in dataset.get_fragments() if dataset is not None else ():
            rows = fragment.to_table(columns=columns, filter=condition)
            found += rows.slice(0, number - len(found)).to_pylist()
            if len(found) == number:
                break
        return found


def to_arrow(frame: pl.DataFrame) -> pa.Table:
    """Return the frame with strings that every Arrow function accepts."""
    return frame.to_arrow(compat_level=pl.CompatLevel.oldest())


def top(table: pa.Table, key: str, count: str, number: int) -> list[tuple[str, int]]:
    """Return the `number` keys with the largest sums of `count` (above zero), largest first."""
    summed = table.group_by(key).aggregate([(count, "sum")]).rename_columns([key, "total"])
    ordered = summed.filter(pc.field("total") > 0).sort_by(
        [("total", "descending"), (key, "ascending")]
    )
    return [(row[key], row["total"]) for row in ordered.slice(0, number).to_pylist()]
