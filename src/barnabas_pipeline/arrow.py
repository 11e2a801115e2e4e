"""Converts between Polars, which is used for computation, and Arrow, which is used to store and
send rows.
"""

from __future__ import annotations

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


def to_bytes(table: pa.Table) -> bytes:
    """Return the table serialised as an Arrow IPC stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return bytes(sink.getvalue())


def from_bytes(stream: bytes | pa.Buffer) -> pa.Table:
    return pa.ipc.open_stream(stream).read_all()
