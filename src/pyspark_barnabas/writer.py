"""Implements the at-least-once sinks, which write each row as a record.

A task returns its commit message to Spark only after all its records have been acknowledged. A
repeated task or micro-batch writes its rows again, so after a failure, rows may be duplicated but
not lost. `commit` and `abort` do nothing, because acknowledged records cannot be undone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]  # ships neither stubs nor py.typed
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from barnabas.client.producer.batch_delivery import BatchDelivery
from barnabas.client.producer.producer import Producer
from barnabas.errors import BarnabasError
from pyspark_barnabas.options import SinkOptions
from pyspark_barnabas.rows import Columns, columns_to_write, records, tables, topic_columns


class RowsWritten(WriterCommitMessage):
    """The number of rows that a task wrote."""

    def __init__(self, count: int) -> None:
        self.count = count


class TopicWriter(DataSourceArrowWriter):
    """Implements `df.write.format("barnabas").mode("append")`."""

    def __init__(self, options: SinkOptions, schema: StructType, overwrite: bool) -> None:
        self._columns = columns_to_write(schema, options.topic, overwrite=overwrite)
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> RowsWritten:
        return RowsWritten(asyncio.run(_write(self._options, self._columns, iterator)))


class TopicStreamWriter(DataSourceStreamArrowWriter):
    """Implements `df.writeStream.format("barnabas")`; rows are appended in every output mode."""

    def __init__(self, options: SinkOptions, schema: StructType, overwrite: bool) -> None:
        self._columns = columns_to_write(schema, options.topic)
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> RowsWritten:
        return RowsWritten(asyncio.run(_write(self._options, self._columns, iterator)))


class _FirstFailure:
    """Stores the first error of any batch, so that the deliveries need not be kept until
    the end.
    """

    def __init__(self) -> None:
        self._error: BarnabasError | None = None

    def note(self, delivery: BatchDelivery) -> None:
        self._error = self._error or delivery.exception()

    def raise_it(self) -> None:
        if self._error is not None:
            raise self._error


async def _write(options: SinkOptions, columns: Columns, batches: Iterator[pa.RecordBatch]) -> int:
    """Send all rows, wait until they are acknowledged, and return their number."""
    properties: dict[str, Any] = dict(options.client)
    count = 0
    failure = _FirstFailure()
    async with Producer(properties.pop("bootstrap.servers"), **properties) as producer:
        async for table in tables(batches):
            found = topic_columns(table, columns, options.topic)
            if found is None:
                rows = records(table, columns, options.topic)
                await producer.send_many(rows, on_delivery=failure.note)
            for topic, values, keys, partitions in found or ():
                await producer.send_columns(
                    topic, values, keys, partition=partitions, on_delivery=failure.note
                )
            count += table.num_rows
            failure.raise_it()
        await producer.flush()
        failure.raise_it()
    return count
