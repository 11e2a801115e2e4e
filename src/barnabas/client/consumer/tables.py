"""Decodes fetched records into an Arrow table column by column, with no Python work per record.

The module needs pyarrow and numpy, which are imported by the first `poll_arrow`. A data frame also
needs pandas.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from barnabas.client.consumer.fetched import FetchedBytes
from barnabas.client.errors import MissingLibrary
from barnabas.errors import CorruptData
from barnabas.extras import install_line
from barnabas.types import TopicPartition

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped]  # ships neither stubs nor py.typed

ARROW = ("numpy", "pyarrow")
PANDAS = (*ARROW, "pandas")


def require(method: str, libraries: Sequence[str]) -> None:
    """Import the libraries that a method needs.

    Raises MissingLibrary if any is missing.
    """
    for name in libraries:
        try:
            import_module(name)
        except ImportError as error:
            raise MissingLibrary(
                f"{method} needs {name}, which is not installed: {install_line('spark', libraries)}"
            ) from error


def table_of(
    fetched: Mapping[TopicPartition, FetchedBytes], *, with_headers: bool, check_crcs: bool
) -> pa.Table:
    """Return the records of these chunks as a table, grouped by partition. Raises CorruptData."""
    import pyarrow as pa

    schema = _schema(with_headers)
    batches: list[Any] = []
    for name, chunk in fetched.items():
        try:
            batches += _batches(name, chunk, schema, check_crcs=check_crcs)
        except CorruptData as error:
            raise CorruptData(f"partition {name}: {error}") from error
    return pa.Table.from_batches(batches, schema)


def _batches(
    name: TopicPartition, chunk: FetchedBytes, schema: pa.Schema, *, check_crcs: bool
) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    from barnabas.records.columns import ALL_OFFSETS, iterate_columns

    with_headers = "headers" in schema.names
    # The first batch may begin before the requested offset, because brokers send whole batches.
    found = iterate_columns(
        chunk.records,
        range(chunk.offset, ALL_OFFSETS.stop),
        aborted=chunk.aborted,
        with_headers=with_headers,
        check_crc=check_crcs,
    )
    for columns in found:
        count = len(columns.offsets)
        arrays = [
            pa.repeat(pa.scalar(name.topic), count),
            pa.repeat(pa.scalar(name.partition, pa.int32()), count),
            columns.offsets,
            columns.timestamps,
            columns.timestamp_types,
            columns.keys,
            columns.values,
        ]
        if with_headers:
            arrays.append(columns.headers)
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


@cache
def _schema(with_headers: bool) -> Any:
    import pyarrow as pa

    fields = [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("ms", "UTC")),
        ("timestamp_type", pa.int32()),
        ("key", pa.binary()),
        ("value", pa.binary()),
    ]
    if with_headers:
        header = pa.struct([("key", pa.string()), ("value", pa.binary())])
        fields.append(("headers", pa.list_(header)))
    return pa.schema(fields)
