"""Converts rows from Spark to columns or records to be written, and checks the columns."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any, Final, NamedTuple

import pyarrow as pa  # type: ignore[import-untyped]  # ships neither stubs nor py.typed
import pyarrow.compute as pc  # type: ignore[import-untyped]
from pyspark.sql.types import StructType

from barnabas.client.producer.batch import ProducerRecord
from barnabas.errors import ConfigError
from pyspark_barnabas.schema import check_write_schema

# Spark's batches contain 10,000 rows for all partitions; with many partitions, the record batches
# would be small.
_TABLE_BYTES: Final = 8_388_608
_NO_TOPIC: Final = "a row's topic is null: fill it in, or give the option topic"


class Columns(NamedTuple):
    """The positions in a row of the columns to write, or -1 for a missing column."""

    value: int
    key: int
    topic: int
    partition: int
    headers: int

    @classmethod
    def of(cls, schema: StructType) -> Columns:
        names = [field.name.lower() for field in schema.fields]
        return cls(*(names.index(name) if name in names else -1 for name in cls._fields))


def columns_to_write(schema: StructType, topic: str | None, *, overwrite: bool = False) -> Columns:
    """Return the columns to write. Raises `ConfigError` for an invalid schema or overwrite mode."""
    if overwrite:
        raise ConfigError('a topic cannot be overwritten: use .mode("append")')
    check_write_schema(schema, topic)
    return Columns.of(schema)


async def tables(batches: Iterator[pa.RecordBatch]) -> AsyncIterator[pa.Table]:
    """Yield the rows as tables of a few megabytes each.

    Spark provides the rows through a blocking iterator. The iterator is read in a separate thread,
    so that requests to the brokers are not delayed.
    """
    while (table := await asyncio.to_thread(_next_table, batches)) is not None:
        yield table


def _next_table(batches: Iterator[pa.RecordBatch]) -> pa.Table | None:
    taken = []
    size_bytes = 0
    for batch in batches:
        taken.append(batch)
        size_bytes += batch.nbytes
        if size_bytes >= _TABLE_BYTES:
            break
    return pa.Table.from_batches(taken) if taken else None


class TopicColumns(NamedTuple):
    """The rows of one topic, in the form that `Producer.send_columns` expects."""

    topic: str
    values: pa.ChunkedArray
    keys: pa.ChunkedArray | None
    partitions: pa.ChunkedArray | None


def topic_columns(
    table: pa.Table, columns: Columns, topic: str | None
) -> list[TopicColumns] | None:
    """Return the rows by topic. Return None if any row has headers, or if only some of the rows
    have a partition.

    Raises `ConfigError` for a row without a topic.
    """
    if columns.headers >= 0 and table.column(columns.headers).null_count < table.num_rows:
        return None
    numbers = None if columns.partition < 0 else table.column(columns.partition)
    if numbers is not None and numbers.null_count:
        if numbers.null_count < table.num_rows:
            return None
        # A column of nulls counts as missing.
        numbers = None
    values = table.column(columns.value)
    keys = None if columns.key < 0 else table.column(columns.key)
    if topic is not None:
        return [TopicColumns(topic, values, keys, numbers)]
    names = table.column(columns.topic)
    if names.null_count:
        raise ConfigError(_NO_TOPIC)
    found = []
    for name in names.unique():
        rows = pc.equal(names, name)
        found.append(
            TopicColumns(
                name.as_py(),
                values.filter(rows),
                None if keys is None else keys.filter(rows),
                None if numbers is None else numbers.filter(rows),
            )
        )
    return found


def records(table: pa.Table, columns: Columns, topic: str | None) -> Iterator[ProducerRecord]:
    """Yield the rows as records. Raises `ConfigError` for a row that cannot be a record."""
    nothing = [None] * table.num_rows

    def cells(index: int, arrow_type: pa.DataType | None = None) -> list[Any]:
        if index < 0:
            return nothing
        column = table.column(index)
        return list((column.cast(arrow_type) if arrow_type else column).to_pylist())

    rows = zip(
        cells(columns.value, pa.binary()),
        cells(columns.key, pa.binary()),
        nothing if topic else cells(columns.topic),
        cells(columns.partition),
        cells(columns.headers),
        strict=True,
    )
    for value, key, row_topic, partition, headers in rows:
        name = topic or row_topic
        if name is None:
            raise ConfigError(_NO_TOPIC)
        yield ProducerRecord(name, value, key, partition, None, _headers(headers))


def _headers(cells: list[dict[str, Any]] | None) -> tuple[tuple[str, bytes | None], ...]:
    if not cells:
        return ()
    headers = tuple((cell["key"], cell["value"]) for cell in cells if cell is not None)
    if any(key is None for key, _ in headers):
        raise ConfigError("a header's key is null: a header needs a key")
    return headers
