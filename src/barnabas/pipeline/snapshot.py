"""The tables as they are at one moment, read with Arrow: all as of the same batch."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
import pyarrow.dataset as ds  # type: ignore[import-untyped]

from barnabas.pipeline.one_pass import merged
from barnabas.pipeline.schemas import ALL, GROWING
from barnabas.pipeline.sessions import described
from barnabas.pipeline.tables import Tables


class Snapshot:
    """What the newest batch has left in the tables of a directory."""

    def __init__(self, directory: Path) -> None:
        self._tables = Tables(directory)
        self.control = self._tables.control()

    def frame(self, name: str) -> pl.DataFrame:
        """A table, its parts merged."""
        if self.control is None:
            parts = ALL[name].empty_table()
        else:
            parts = self._tables.parts(name, self.control.versions[name])
        if name in GROWING:
            frame = pl.from_arrow(parts)
            assert isinstance(frame, pl.DataFrame)
            return frame
        rows = merged(name, parts)
        if name != "sessions":
            return rows
        newest_s = self.control.newest_s if self.control else None
        return described(rows, newest_s or 0)

    def rows(self, name: str, columns: list[str]) -> pa.Table:
        """These columns of a table whose parts are merged."""
        return self.frame(name).select(columns).to_arrow(compat_level=pl.CompatLevel.oldest())

    def appended(self, name: str) -> ds.Dataset | None:
        """A table of which a row is written once, not read yet; None before the first batch."""
        if self.control is None:
            return None
        return self._tables.stored(name, self.control.versions[name])


def top(table: pa.Table, key: str, count: str, number: int) -> list[tuple[str, int]]:
    """The `number` keys with the largest sums of `count` (above zero), largest first."""
    summed = table.group_by(key).aggregate([(count, "sum")]).rename_columns([key, "total"])
    ordered = summed.filter(pc.field("total") > 0).sort_by(
        [("total", "descending"), (key, "ascending")]
    )
    return [(row[key], row["total"]) for row in ordered.slice(0, number).to_pylist()]
