"""Sends whole columns: chooses partitions, encodes batches and passes them to the accumulator.

A few megabytes are encoded at a time, and each portion waits for room, so `buffer.memory` limits
columns in the same way as records.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from barnabas.client import arguments
from barnabas.client.producer.batch import ColumnOptions, ProducerBatch, ProducerRecord
from barnabas.client.producer.batch_delivery import BatchDelivery
from barnabas.client.producer.delivery import call_back
from barnabas.counted import counted
from barnabas.errors import ConfigError
from barnabas.extras import install_line
from barnabas.records.compression import CODEC_NAMES
from barnabas.types import TopicPartition

try:
    import numpy as np

    from barnabas.client.producer.column_partitions import chosen_partitions, given_partitions
    from barnabas.client.producer.column_rows import ColumnBatch, ColumnRows
except ImportError as cause:
    raise ConfigError(f"send_columns needs numpy: {install_line('spark', ['numpy'])}") from cause

if TYPE_CHECKING:
    from barnabas.client.producer.intake import Intake


class ColumnSender:
    """Sends the columns that were passed to one call of `send_columns`."""

    def __init__(self, intake: Intake) -> None:
        self._intake = intake
        self._accumulator = intake.accumulator
        self._partitioner = intake.partitioner
        self._memory = intake.memory
        self._config = intake.config
        self._codec = CODEC_NAMES.index(self._config.compression_type)
        self._deliveries: list[BatchDelivery] = []
        self._on_delivery: Callable[[BatchDelivery], Any] | None = None

    async def send(
        self, topic: str, values: Any, keys: Any, options: ColumnOptions
    ) -> list[BatchDelivery]:
        """Send the columns, as `Producer.send_columns` does."""
        partition, timestamps_ms = options.get("partition"), options.get("timestamps_ms")
        on_delivery = options.get("on_delivery")
        if on_delivery is not None:
            self._on_delivery = arguments.callback(on_delivery, "on_delivery")
        if unknown := options.keys() - ColumnOptions.__annotations__.keys():
            raise TypeError(f"send_columns has no argument {', '.join(sorted(unknown))}")
        arguments.topic_name(topic)
        # Columns offer no advantage, because the user's function takes single records.
        if self._intake.prepares or self._partitioner.is_custom:
            await self._send_each(_records(topic, values, keys, partition, timestamps_ms))
            return self._deliveries
        times = self._intake.wall_ms() if timestamps_ms is None else timestamps_ms
        rows = ColumnRows.of(values, keys, times, self._config.max_request_size)
        wanted = None if partition is None else given_partitions(partition, len(rows.times))
        # Check before queueing anything, because the whole call must fail if a partition does not
        # exist.
        numbers = [] if wanted is None else np.unique(wanted).tolist()
        view = await self._intake.topic_with(topic, numbers)
        if wanted is None:
            wanted = chosen_partitions(self._partitioner, topic, view.choice, rows)
        for number, part in rows.by_partition(wanted):
            name = TopicPartition(topic, number)
            for batch in part.batches(self._config.batch_size, self._codec):
                await self._queue(name, batch)
        return self._deliveries

    async def _send_each(self, records: Iterator[ProducerRecord]) -> None:
        """Send the rows one by one, for the user's serializers, interceptors or partitioner."""
        found: dict[ProducerBatch, tuple[list[int], list[int]]] = {}
        for row, record in enumerate(records):
            delivery = await self._intake.send_record(record)
            numbers, places = found.setdefault(delivery.batch, ([], []))
            numbers.append(row)
            places.append(delivery.index)
        for batch, (numbers, places) in found.items():
            self._keep(BatchDelivery(batch, numbers, places))

    async def _queue(self, name: TopicPartition, encoded: ColumnBatch) -> None:
        records, numbers = encoded
        limit_ms = self._config.max_block_ms
        try:
            async with asyncio.timeout(limit_ms / 1000), self._memory.line:
                await self._memory.wait(len(records.body))
                batch = self._accumulator.append_sealed(name, records, self._intake.now_ms())
        except TimeoutError:
            raise self._memory.full(name.topic, limit_ms) from None
        self._intake.watch(batch)
        self._keep(BatchDelivery(batch, numbers, range(records.count)))
        await asyncio.sleep(0)  # lets the sender take the batch

    def _keep(self, delivery: BatchDelivery) -> None:
        self._deliveries.append(delivery)
        if self._on_delivery is not None:
            report = self._on_delivery
            delivery.batch.when_done(lambda: call_back(report, delivery))


def _records(
    topic: str, values: Any, keys: Any, partition: Any, timestamps_ms: Any
) -> Iterator[ProducerRecord]:
    """Yield the rows as records, with each cell as a Python object."""
    cells = _cells(values, "values")
    columns = {"keys": keys, "partition": partition, "timestamps_ms": timestamps_ms}
    others = []
    for name, column in columns.items():
        if name != "keys" and not hasattr(column, "__len__"):
            others.append([column] * len(cells))
        else:
            others.append([None] * len(cells) if column is None else _cells(column, name))
        if len(others[-1]) != len(cells):
            raise ValueError(
                f"{name}: {counted(len(others[-1]), 'row')}, but {counted(len(cells), 'value')}"
            )
    for value, key, number, time_ms in zip(cells, *others, strict=True):
        yield ProducerRecord(topic, value, key, number, time_ms)


def _cells(column: Any, argument: str) -> list[Any]:
    for method in ("to_pylist", "tolist", "to_list"):  # Arrow, numpy and pandas, polars
        if hasattr(column, method):
            return list(getattr(column, method)())
    return arguments.several(column, argument)
