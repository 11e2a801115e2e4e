"""Reads events with a number in place of each text.

Among ten million events, a visitor or a page occurs many times. Numbers need a tenth of the memory
of texts, and sort in a tenth of the time.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final, NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa  # type: ignore[import-untyped]

from barnabas_pipeline.tracking.schemas import EVENTS
from barnabas_pipeline.view import View

MISSING: Final = -1
"""The number of a missing text."""


class Coded(NamedTuple):
    """Events, whose times are in microseconds."""

    rows: pl.DataFrame
    texts: dict[str, pl.Series]
    """The texts of each column, in the order of their numbers."""

    def fit(self, column: str, is_fit: pl.Series) -> np.ndarray:
        """Return whether the text of each row is one of those that fit. A missing one is not.

        `is_fit`: whether each of the column's texts fits.
        """
        known = np.append(is_fit.to_numpy().astype(bool), False)  # the last one is MISSING's
        found: np.ndarray = known[self.rows[column].to_numpy()]
        return found


def read_coded(view: View, columns: list[str], condition: Any, texts: Collection[str]) -> Coded:
    """Return these columns of the events that meet the condition.

    `texts`: the columns whose texts are replaced by numbers.
    """
    schema = pa.schema([EVENTS.field(name) for name in columns])
    batches = [_encoded(pa.RecordBatch.from_pylist([], schema), texts)]
    dataset = view.dataset("events")
    if dataset is not None:
        scanner = dataset.scanner(columns=columns, filter=condition, use_threads=False)
        batches += [_encoded(batch, texts) for batch in scanner.to_batches() if len(batch)]
    table = pa.Table.from_batches(batches).unify_dictionaries()
    dictionaries = {name: _texts(table[name]) for name in texts}
    for name in texts:
        numbers = pa.chunked_array([each.indices.fill_null(MISSING) for each in table[name].chunks])
        table = table.set_column(table.schema.get_field_index(name), name, numbers)
    rows = pl.from_arrow(table)
    assert isinstance(rows, pl.DataFrame)
    return Coded(rows.with_columns(pl.col("time").dt.epoch("us")), dictionaries)


def _encoded(batch: Any, texts: Collection[str]) -> Any:
    columns = [
        column.dictionary_encode() if name in texts else column
        for name, column in zip(batch.schema.names, batch.columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, batch.schema.names)


def _texts(column: Any) -> pl.Series:
    return pl.Series(column.chunk(0).dictionary, dtype=pl.String)
