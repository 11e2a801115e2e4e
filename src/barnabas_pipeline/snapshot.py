"""Reads a snapshot of the tables on disk with Arrow. All tables are read as of the same batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import reduce
from operator import and_
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow.compute as pc  # type: ignore[import-untyped]
import pyarrow.dataset as ds  # type: ignore[import-untyped]

from barnabas_pipeline.layout import Layout
from barnabas_pipeline.tables import Control, Tables
from barnabas_pipeline.view import View


class Snapshot(View):
    """The tables of a directory as of the last complete batch."""

    def __init__(self, directory: Path, layout: Layout) -> None:
        self._tables = Tables(directory, layout)
        self.control = self._tables.control()

    @classmethod
    def at(cls, tables: Tables, control: Control) -> Snapshot:
        """Return the tables as of this state."""
        snapshot = cls.__new__(cls)
        snapshot._tables, snapshot.control = tables, control
        return snapshot

    @property
    def newest_s(self) -> int | None:
        return self.control.newest_s if self.control else None

    def frame(self, name: str) -> pl.DataFrame:
        layout = self._tables.layout
        if self.control is None:
            parts = layout.all[name].empty_table()
        else:
            parts = self._tables.parts(name, self.control.versions.get(name))
        if name in layout.growing:
            frame = pl.from_arrow(parts)
            assert isinstance(frame, pl.DataFrame)
            return frame
        return layout.merge(name, parts)

    def dataset(self, name: str) -> ds.Dataset | None:
        """Return a growing table without reading it, or None before the first batch."""
        version = None if self.control is None else self.control.versions.get(name)
        return None if version is None else self._tables.dataset(name, version)

    def reasons(self) -> Counter[str]:
        dataset = self.dataset("dead_letters")
        if dataset is None:
            return Counter()
        return Counter(dataset.to_table(columns=["reason"])["reason"].to_pylist())

    def some(
        self, name: str, number: int, columns: list[str], of: Mapping[str, str]
    ) -> list[dict[str, Any]]:
        # Read files one by one, and only as many as needed.
        found: list[dict[str, Any]] = []
        dataset = self.dataset(name)
        conditions = [pc.field(column) == value for column, value in of.items()]
        condition = reduce(and_, conditions) if conditions else None
        for fragment in dataset.get_fragments() if dataset is not None else ():
            rows = fragment.to_table(columns=columns, filter=condition)
            found += rows.slice(0, number - len(found)).to_pylist()
            if len(found) == number:
                break
        return found
