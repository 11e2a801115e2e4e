"""Converts between Polars, which is used for computation, and Arrow, which is used to store and
send rows.
"""

from __future__ import annotations

from typing import Any

import polars as pl
import pyarrow as pa  # type: ignore[import-untyped]


def to_table(frame: pl.DataFrame, schema: pa.Schema) -> pa.Table:
    """Return the columns that the schema lists, converted to the schema's types."""
    # The newest compatibility level uses string views, which cannot be cast.
    table = frame.select(schema.names).to_arrow(compat_level=pl.CompatLevel.oldest())
    return table.cast(schema)


def to_frame(table: pa.Table) -> pl.DataFrame:
    frame = pl.from_arrow(table)
    assert isinstance(frame, pl.DataFrame)
    return frame


def scan(dataset: Any, schema: pa.Schema, columns: list[str], condition: Any) -> pl.DataFrame:
    """Return these columns of the rows that meet the condition.

    `dataset`: an Arrow dataset with this schema, or None for a table that does not exist, which has
    no rows.
    """
    if dataset is None:
        return to_frame(schema.empty_table().select(columns))
    scanner = dataset.scanner(columns=columns, filter=condition, use_threads=False)
    return to_frame(scanner.to_table())


def to_bytes(table: pa.Table) -> bytes:
    """Return the table serialised as an Arrow IPC stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return bytes(sink.getvalue())


def from_bytes(stream: bytes | pa.Buffer) -> pa.Table:
    return pa.ipc.open_stream(stream).read_all()
