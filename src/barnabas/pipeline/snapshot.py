"""The tables as they are at one moment, read with Arrow.

Resolves `current` once, so everything comes from the same version; of the tables that only grow it
takes the batches up to that version's.
"""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
import pyarrow.dataset as ds  # type: ignore[import-untyped]


class Snapshot:
    """One version of the tables in a directory."""

    def __init__(self, tables: Path) -> None:
        self._tables = tables
        self._version = (tables / "current").resolve()

    def rows(self, name: str, columns: list[str]) -> pa.Table:
        """These columns of a daily table or of `files`; no rows where nothing was written."""
        return self._read(sorted((self._version / name).rglob("*.parquet")), columns)

    def appended(self, name: str) -> ds.Dataset | None:
        """A table that only grows, not read yet; None while it is empty."""
        directories = sorted((self._tables / name).glob("batch=*"))
        last = self._batch()
        paths = [
            path
            for directory in directories
            if int(directory.name.removeprefix("batch=")) <= last
            for path in sorted(directory.glob("*.parquet"))
        ]
        return _dataset(paths) if paths else None

    def _batch(self) -> int:
        manifest = self._version / "manifest.json"
        return int(json.loads(manifest.read_text("utf-8"))["batch"]) if manifest.exists() else -1

    def _read(self, paths: list[Path], columns: list[str]) -> pa.Table:
        if not paths:
            return pa.table({name: pa.array([], pa.null()) for name in columns})
        return _dataset(paths).to_table(columns=columns)


def _dataset(paths: list[Path]) -> ds.Dataset:
    return ds.dataset([str(path) for path in paths], format="parquet")


def top(table: pa.Table, key: str, count: str, number: int) -> list[tuple[str, int]]:
    """The `number` keys with the largest sums of `count` (above zero), largest first."""
    summed = table.group_by(key).aggregate([(count, "sum")]).rename_columns([key, "total"])
    ordered = summed.filter(pc.field("total") > 0).sort_by(
        [("total", "descending"), (key, "ascending")]
    )
    return [(row[key], row["total"]) for row in ordered.slice(0, number).to_pylist()]
