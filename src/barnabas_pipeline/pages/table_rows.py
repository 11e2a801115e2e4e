"""Reads a table's rows in batches, and single rows again by their numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]

from barnabas_pipeline.pages.hits import Array


class TableRows:
    """The rows of a table, numbered in the order of its files.

    Files that a later version of the table no longer contains remain on disk for a week.
    """

    def __init__(self, dataset: Any, schema: pa.Schema) -> None:
        """`dataset`: the table, or None if it does not exist. `schema`: its columns today; those
        that an older file does not have are null.
        """
        self._schema = schema
        self._files = [] if dataset is None else list(dataset.get_fragments())
        self._known = 0
        self._groups: list[tuple[Any, int]] | None = None
        self._begins = np.zeros(1, dtype=np.int64)

    def after(self, before: TableRows) -> TableRows | None:
        """Return the rows with those of an earlier version of the table first, numbered as there.

        Return None if the table no longer contains all files of that version, such as after a
        compaction.
        """
        files = {file.path: file for file in self._files}
        if any(files.pop(file.path, None) is None for file in before._files):
            return None
        found = TableRows(None, self._schema)
        found._files = [*before._files, *files.values()]
        found._known = len(before._files)
        return found

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """Yield these columns of all rows, in order, without those of an earlier version."""
        for file in self._files[self._known :]:
            yield from file.to_batches(
                schema=self._schema, columns=list(columns), batch_readahead=1, fragment_readahead=1
            )

    def take(self, numbers: Array, columns: Sequence[str]) -> list[dict[str, Any]]:
        """Return the rows with these numbers, in the order of `numbers`."""
        found: dict[int, dict[str, Any]] = {}
        for chosen, table in self._tables(np.sort(numbers), columns):
            found.update(zip(chosen.tolist(), table.to_pylist(), strict=True))
        return [found[int(number)] for number in numbers]

    def each(self, numbers: Array, columns: Sequence[str]) -> Iterator[dict[str, Any]]:
        """Yield the rows with these numbers, in the order of the table."""
        for _, table in self._tables(np.sort(numbers), columns):
            for batch in table.to_batches(max_chunksize=1_000):
                yield from batch.to_pylist()

    def _tables(self, numbers: Array, columns: Sequence[str]) -> Iterator[tuple[Array, pa.Table]]:
        groups = self._row_groups()
        owners = np.searchsorted(self._begins, numbers, side="right") - 1
        for owner in np.unique(owners).tolist():
            file, group = groups[owner]
            chosen = numbers[owners == owner]
            part = file.subset(row_group_ids=[group])
            try:
                table = part.to_table(schema=self._schema, columns=list(columns))
            except (pa.ArrowException, OSError) as error:
                if file.path in str(error):
                    raise
                raise pa.ArrowInvalid(f"{file.path}: {error}") from error
            yield chosen, table.take(pa.array(chosen - self._begins[owner]))

    def _row_groups(self) -> list[tuple[Any, int]]:
        if self._groups is None:
            found = [(file, group) for file in self._files for group in file.row_groups]
            self._begins = np.cumsum([0, *(group.num_rows for _, group in found)])
            # Files are sent from other threads, so this is set last.
            self._groups = [(file, group.id) for file, group in found]
        return self._groups


def micros(column: Any) -> Array:
    """Return times in microseconds since 1970."""
    numbers: Array = column.cast(pa.int64()).to_numpy(zero_copy_only=False)
    return numbers


def flags(column: Any) -> Array:
    """Return truth values; null is false."""
    found: Array = pc.fill_null(column, False).to_numpy(zero_copy_only=False)
    return found
