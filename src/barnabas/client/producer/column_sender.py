"""Sends whole columns: rows to partitions, partitions to batches, batches to the accumulator.

The rows of a partition keep their order. They are encoded some megabytes at a time, each of which
waits for room: `buffer.memory` holds for columns as for records.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from barnabas.client import arguments
from barnabas.client.producer.accumulator import Accumulator
from barnabas.client.producer.batch import ColumnOptions, ProducerBatch, ProducerRecord
from barnabas.client.producer.batch_delivery import BatchDelivery
from barnabas.client.producer.delivery import call_back
from barnabas.client.producer.open_records import SealedRecords
from barnabas.client.producer.partitioner import Partitioner
from barnabas.client.producer.room import Room
from barnabas.client.view import TopicView
from barnabas.errors import ConfigError, MessageTooLarge
from barnabas.records.batch import HEADER_BYTES, new_header
from barnabas.records.compression import CODEC_NAMES, NONE, compress
from barnabas.records.record import RECORD_OVERHEAD_BYTES
from barnabas.types import TopicPartition

try:
    import numpy as np

    from barnabas.client.producer.murmur2_columns import partitions_for_keys
    from barnabas.records.byte_column import ByteColumn, Integers
    from barnabas.records.column_encoder import encode
except ImportError as cause:
    raise ConfigError("send_columns needs numpy: pip install numpy") from cause

if TYPE_CHECKING:
    from barnabas.client.producer.producer import Producer

_SLICE_BYTES = 4_194_304
_MOST_SLICE_ROWS = 262_144


class _Rows(NamedTuple):
    """Rows of the given columns, some of them or all."""

    values: ByteColumn
    keys: ByteColumn | None
    times: Integers
    numbers: Integers | range
    """Of the rows, as they were given."""

    def part(self, first: int, end: int) -> _Rows:
        keys = None if self.keys is None else self.keys.part(first, end)
        times, numbers = self.times[first:end], self.numbers[first:end]
        return _Rows(self.values.part(first, end), keys, times, numbers)

    def take(self, rows: Integers) -> _Rows:
        keys = None if self.keys is None else self.keys.take(rows)
        return _Rows(self.values.take(rows), keys, self.times[rows], rows)

    def sizes(self) -> Integers:
        """The most bytes that each record can have."""
        sizes = self.values.lengths + RECORD_OVERHEAD_BYTES
        return sizes if self.keys is None else sizes + self.keys.lengths


class ColumnSender:
    """For one call of `send_columns`."""

    def __init__(
        self, producer: Producer, accumulator: Accumulator, partitioner: Partitioner, room: Room
    ) -> None:
        self._producer = producer
        self._accumulator = accumulator
        self._partitioner = partitioner
        self._room = room
        self._config = producer.config
        self._codec = CODEC_NAMES.index(self._config.compression_type)
        self._deliveries: list[BatchDelivery] = []
        self._on_delivery: Callable[[BatchDelivery], Any] | None = None

    async def send(
        self, topic: str, values: Any, keys: Any, options: ColumnOptions
    ) -> list[BatchDelivery]:
        """As `Producer.send_columns`."""
        partition, timestamps_ms = options.get("partition"), options.get("timestamps_ms")
        on_delivery = options.get("on_delivery")
        if on_delivery is not None:
            self._on_delivery = arguments.callback(on_delivery, "on_delivery")
        if unknown := options.keys() - ColumnOptions.__annotations__.keys():
            raise TypeError(f"send_columns has no argument {', '.join(sorted(unknown))}")
        arguments.topic_name(topic)
        if self._producer.prepares or self._partitioner.is_custom:
            await self._send_each(_records(topic, values, keys, partition, timestamps_ms))
            return self._deliveries
        rows = self._rows(values, keys, timestamps_ms)
        wanted = _wanted(partition, len(rows.values))
        view = await self._producer.topic(topic)
        for number in [] if wanted is None else np.unique(wanted).tolist():
            self._producer.check_partition(view, number)
        if wanted is None:
            wanted = self._chosen(view, rows)
        if len(wanted) and int(wanted.min()) == int(wanted.max()):
            await self._send_to(TopicPartition(topic, int(wanted[0])), rows)
        else:
            await self._send_apart(topic, rows, wanted)
        return self._deliveries

    def _rows(self, values: Any, keys: Any, timestamps_ms: Any) -> _Rows:
        column = ByteColumn.of(values, "values")
        count = len(column)
        key_column = None if keys is None else ByteColumn.of(keys, "keys")
        if key_column is not None and len(key_column) != count:
            raise ValueError(f"keys: {len(key_column)} rows, but {count} values")
        if timestamps_ms is None:
            timestamps_ms = self._producer.wall_ms()
        times = _whole_numbers(timestamps_ms, count, "timestamps_ms")
        rows = _Rows(column, key_column, times, range(count))
        sizes, most = rows.sizes(), self._config.max_request_size
        if count and int(sizes.max()) > most:
            row = int(sizes.argmax())
            raise MessageTooLarge(
                f"values: row {row} makes a record of {int(sizes[row])} bytes, more than {most} "
                "(max.request.size)"
            )
        return rows

    async def _send_each(self, records: Iterator[ProducerRecord]) -> None:
        """Row by row, for serializers, interceptors and partitioners of the user's own."""
        found: dict[ProducerBatch, tuple[list[int], list[int]]] = {}
        for row, record in enumerate(records):
            delivery = await self._producer.send_record(record)
            numbers, places = found.setdefault(delivery.batch, ([], []))
            numbers.append(row)
            places.append(delivery.index)
        for batch, (numbers, places) in found.items():
            self._keep(BatchDelivery(batch, numbers, places))

    def _chosen(self, view: TopicView, rows: _Rows) -> Integers:
        """The partition of each row, by its key or without one."""
        sizes = rows.sizes()
        if rows.keys is None:
            return self._keyless(view, sizes)
        chosen = partitions_for_keys(rows.keys, view.choice.partition_count)
        if rows.keys.nulls is not None:
            chosen[rows.keys.nulls] = self._keyless(view, sizes[rows.keys.nulls])
        return chosen

    def _keyless(self, view: TopicView, sizes: Integers) -> Integers:
        """As many rows to each partition as the partitioner stays with it."""
        sums = np.cumsum(sizes)
        partitions, ends = [], [0]
        while ends[-1] < len(sizes):
            first = ends[-1]
            partitions.append(self._partitioner.partition(view.name, None, view.choice))
            before = int(sums[first - 1]) if first else 0
            stays_bytes = self._partitioner.stays_bytes(view.name)
            # It stays until so many bytes are exceeded, so the row that exceeds them goes there.
            end = int(np.searchsorted(sums, before + stays_bytes, "left")) + 1
            ends.append(min(end if stays_bytes else first + 1, len(sizes)))
            self._partitioner.appended(view.name, int(sums[ends[-1] - 1]) - before)
        return np.repeat(np.array(partitions, np.int64), np.diff(ends))

    async def _send_apart(self, topic: str, rows: _Rows, wanted: Integers) -> None:
        """Each row to its partition, in the order of the partitions' numbers."""
        order = np.argsort(wanted, kind="stable")
        chosen, firsts = np.unique(wanted[order], return_index=True)
        ends = [*firsts[1:].tolist(), len(order)]
        for partition, first, end in zip(chosen.tolist(), firsts.tolist(), ends, strict=False):
            name = TopicPartition(topic, partition)
            await self._send_to(name, rows.take(order[first:end]))

    async def _send_to(self, name: TopicPartition, rows: _Rows) -> None:
        """All rows to one partition."""
        first = 0
        for end in _cuts(rows.sizes(), _SLICE_BYTES, _MOST_SLICE_ROWS):
            await self._send_slice(name, rows.part(first, end))
            first = end

    async def _send_slice(self, name: TopicPartition, rows: _Rows) -> None:
        ends = list(_cuts(rows.sizes(), self._config.batch_size - HEADER_BYTES))
        firsts = [0, *ends[:-1]]
        counts = np.diff([0, *ends])
        places = np.arange(len(rows.times)) - np.repeat(firsts, counts)
        deltas = rows.times - np.repeat(rows.times[firsts], counts)
        encoded = encode(rows.values, rows.keys, deltas, places)
        bounds = encoded.starts[[0, *ends]].tolist()
        octets = encoded.octets.data
        bases = rows.times[firsts].tolist()
        lasts = np.maximum.reduceat(rows.times, firsts).tolist()
        for number, (first, end) in enumerate(zip(firsts, ends, strict=True)):
            body: Any = octets[bounds[number] : bounds[number + 1]]
            if self._codec != NONE:
                body = compress(self._codec, body)
            header = new_header(self._codec, end - first, bases[number], lasts[number])
            await self._queue(name, SealedRecords(header, body), _sequence(rows.numbers[first:end]))

    async def _queue(
        self, name: TopicPartition, records: SealedRecords, numbers: Sequence[int]
    ) -> None:
        limit_ms = self._config.max_block_ms
        try:
            async with asyncio.timeout(limit_ms / 1000), self._room.line:
                await self._room.wait(len(records.body))
                batch = self._accumulator.append_sealed(name, records, self._producer.now_ms())
        except TimeoutError:
            raise self._room.full(name.topic, limit_ms) from None
        self._producer.watch(batch)
        self._keep(BatchDelivery(batch, numbers, range(records.count)))
        await asyncio.sleep(0)  # the sender may take it

    def _keep(self, delivery: BatchDelivery) -> None:
        self._deliveries.append(delivery)
        if self._on_delivery is not None:
            report = self._on_delivery
            delivery.batch.when_done(lambda: call_back(report, delivery))


def _sequence(numbers: Integers | range) -> Sequence[int]:
    return numbers if isinstance(numbers, range) else numbers.tolist()


def _cuts(sizes: Integers, limit: int, most_rows: int = 2**31) -> Iterator[int]:
    """The ends of parts of at most `limit` bytes, but of one row at least."""
    sums = np.cumsum(sizes)
    first, before = 0, 0
    while first < len(sizes):
        end = int(np.searchsorted(sums, before + limit, "right"))
        end = min(max(end, first + 1), first + most_rows)
        yield end
        first, before = end, int(sums[end - 1])


def _wanted(partition: Any, count: int) -> Integers | None:
    """The partition of each row, if it is given."""
    if partition is None:
        return None
    numbers = _whole_numbers(partition, count, "partition")
    if count and int(numbers.max()) > arguments.INT32_MAX:
        raise ValueError(f"partition: {numbers.max()} is not in 0 to {arguments.INT32_MAX}")
    return numbers


def _whole_numbers(given: Any, count: int, argument: str) -> Integers:
    """One number for all rows, or one for each; none is negative."""
    if not hasattr(given, "__len__"):
        return np.full(count, arguments.whole_number(given, argument), np.int64)
    numbers = np.asarray(given)
    if numbers.ndim != 1 or (numbers.dtype.kind not in "iu" and len(numbers)):
        raise TypeError(f"{argument}: must be whole numbers, not {numbers.dtype}")
    if len(numbers) != count:
        raise ValueError(f"{argument}: {len(numbers)} rows, but {count} values")
    if count and int(numbers.min()) < 0:
        raise ValueError(f"{argument}: row {int(numbers.argmin())} is {numbers.min()}, negative")
    return numbers.astype(np.int64)


def _records(
    topic: str, values: Any, keys: Any, partition: Any, timestamps_ms: Any
) -> Iterator[ProducerRecord]:
    """The rows as records, each cell as Python has it."""
    cells = _cells(values, "values")
    columns = {"keys": keys, "partition": partition, "timestamps_ms": timestamps_ms}
    others = []
    for name, column in columns.items():
        if name != "keys" and not hasattr(column, "__len__"):
            others.append([column] * len(cells))
        else:
            others.append([None] * len(cells) if column is None else _cells(column, name))
        if len(others[-1]) != len(cells):
            raise ValueError(f"{name}: {len(others[-1])} rows, but {len(cells)} values")
    for value, key, number, time_ms in zip(cells, *others, strict=True):
        yield ProducerRecord(topic, value, key, number, time_ms)


def _cells(column: Any, argument: str) -> list[Any]:
    for method in ("to_pylist", "tolist", "to_list"):  # Arrow, numpy and pandas, polars
        if hasattr(column, method):
            return list(getattr(column, method)())
    return arguments.several(column, argument)
