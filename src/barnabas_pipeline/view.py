"""Defines access to a pipeline's tables, on disk or in memory."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping
from typing import Any

import polars as pl


class View(ABC):
    """Reads all tables of a pipeline as of the same batch."""

    @property
    @abstractmethod
    def newest_s(self) -> int | None:
        """The time of the newest line, in seconds since the epoch, or None if there are no
        lines."""

    @abstractmethod
    def frame(self, name: str) -> pl.DataFrame:
        """Return a table with its parts merged."""

    @abstractmethod
    def dataset(self, name: str) -> Any:
        """Return a growing table as an Arrow dataset that has not been read, or None if the table
        does not exist.
        """

    @abstractmethod
    def reasons(self) -> Counter[str]:
        """Return the number of dead letters by reason."""

    @abstractmethod
    def some(
        self, name: str, number: int, columns: list[str], of: Mapping[str, str]
    ) -> list[dict[str, Any]]:
        """Return up to `number` rows of a table whose rows are written once.

        `of`: the values that the rows must have, by column.
        """
