"""Converts rows to records, and checks the columns to write."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import pyarrow as pa  # type: ignore[import-untyped]  # ships neither stubs nor py.typed
from pyspark.sql.types import StructType

from barnabas.client.producer.batch import ProducerRecord
from barnabas.errors import ConfigError
from pyspark_barnabas.schema import check_write_schema


class Columns(NamedTuple):
    """The places of the written columns in a row; -1: missing."""

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
    """The columns to write. Raises `ConfigError` for an invalid schema, or overwrite mode."""
    if overwrite:
        raise ConfigError('a topic cannot be overwritten: use .mode("append")')
    check_write_schema(schema, topic)
    return Columns.of(schema)


def records(batch: pa.RecordBatch, columns: Columns, topic: str | None) -> Iterator[ProducerRecord]:
    """The rows as records. Raises `ConfigError` for a row that cannot be one."""
    nothing = [None] * batch.num_rows

    def cells(index: int, arrow_type: pa.DataType | None = None) -> list[Any]:
        if index < 0:
            return nothing
        column = batch.column(index)
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
            raise ConfigError("a row's topic is null: fill it in, or give the option topic")
        yield ProducerRecord(name, value, key, partition, None, _headers(headers))


def _headers(cells: list[dict[str, Any]] | None) -> tuple[tuple[str, bytes | None], ...]:
    if not cells:
        return ()
    headers = tuple((cell["key"], cell["value"]) for cell in cells if cell is not None)
    if any(key is None for key, _ in headers):
        raise ConfigError("a header's key is null: a header needs a key")
    return headers
