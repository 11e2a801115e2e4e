"""Reads the state of a pipeline's tables, wherever they are: on disk, or in memory."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from typing import Any

import polars as pl
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]


class View(ABC):
    """All tables of a pipeline as of the same batch."""

    @property
    @abstractmethod
    def newest_s(self) -> int | None:
        """The time of the newest line, in seconds since the epoch; None without a line."""

    @abstractmethod
    def frame(self, name: str) -> pl.DataFrame:
        """Return a table with its parts merged."""

    @abstractmethod
    def reasons(self) -> Counter[str]:
        """Return the number of dead letters by reason."""

    @abstractmethod
    def some(
        self, name: str, number: int, columns: list[str], condition: pc.Expression
    ) -> list[dict[str, Any]]:
        """Return up to `number` rows of a table whose rows are written once."""

    def rows(self, name: str, columns: list[str]) -> pa.Table:
        """Return these columns of a merged table."""
        return to_arrow(self.frame(name).select(columns))


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
