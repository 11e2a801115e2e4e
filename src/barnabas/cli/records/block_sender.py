"""Sends blocks of values, with or without keys, as batches, which is fast for files of lines."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from importlib.util import find_spec
from itertools import accumulate
from typing import Any

from barnabas.client.producer.batch import ProducerBatch
from barnabas.client.producer.open_records import OpenRecords
from barnabas.client.producer.partitioner import Partitioner, Partitions
from barnabas.client.producer.producer import Producer
from barnabas.clock import SystemClock, SystemRandom
from barnabas.records.batch import seal
from barnabas.records.compression import CODEC_NAMES, NONE
from barnabas.types import TopicPartition

MOST_RECORDS = 4_096  # the size of a batch

_FEWEST = 32
_FEWEST_KEYED = 1_000  # numpy is worthwhile from this number of values on
_RECORD_OVERHEAD_BYTES = 100
_PER_RECORD = frozenset(
    {
        *("partitioner", "partitioner_class", "max_request_size"),
        *("key_serializer", "value_serializer", "interceptor_classes"),
    }
)
"""Options that determine how records form batches, or that apply to each record."""


def suits(options: Mapping[str, Any], given: Mapping[str, Any]) -> bool:
    """Return whether these producer options allow this module to form the batches."""
    return not _PER_RECORD & given.keys() and int(options["batch_size"]) > _RECORD_OVERHEAD_BYTES


class BlockSender:
    """Sends whole batches. If the values have keys, the keys determine the partitions. Otherwise,
    batches go to one given partition or to each partition in turn (PR-2: sticky).
    """

    def __init__(
        self, producer: Producer, topic: str, partition: int | None, options: Mapping[str, Any]
    ) -> None:
        self._producer = producer
        self._topic = topic
        self._partition = partition
        self._batch_bytes = int(options["batch_size"])
        self._codec = CODEC_NAMES.index(options["compression_type"])
        self._partitioner = Partitioner("sticky", SystemRandom(), self._batch_bytes)
        self._partitions = Partitions(0, (), 0)
        self._clock = SystemClock()
        self._takes_keys = find_spec("numpy") is not None

    def takes(self, values: Sequence[bytes], keys: Sequence[bytes] | None) -> bool:
        """Return whether there are many values and none is too large for a batch. If there are only
        a few, the input is a slow pipe, and the producer should collect values for `linger.ms`.
        """
        if keys is None:
            return len(values) >= _FEWEST and max(map(len, values)) <= self._batch_bytes
        if len(values) < _FEWEST_KEYED or not self._takes_keys:
            return False
        return max(map(len, values)) + max(map(len, keys)) <= self._batch_bytes

    async def send(
        self, values: Sequence[bytes], keys: Sequence[bytes] | None
    ) -> AsyncIterator[ProducerBatch]:
        """Yield the batches. Raises like the producer's `send`."""
        # The producer itself builds the batches for each partition, column by column.
        if keys is not None:
            for delivery in await self._producer.send_columns(
                self._topic, values, keys, partition=self._partition
            ):
                yield delivery.batch
            return
        for part in batches_of(values, self._batch_bytes):
            partition = await self._next_partition()
            batch = encode_values(part, self._clock.wall_ms(), self._codec)
            place = TopicPartition(self._topic, partition)
            yield (await self._producer.send_batch(place, batch)).batch
            self._partitioner.on_appended(self._topic, len(batch))

    async def _next_partition(self) -> int:
        """Return a partition that currently has a leader, if any."""
        if self._partition is not None:
            return self._partition
        known = self._partitions
        available = tuple(await self._producer.available_partitions_for(self._topic))
        # New partitions reset the partitioner's choice, so pass them only if they have changed.
        if available != known.available or not known.partition_count:
            numbers = await self._producer.partitions_for(self._topic)
            self._partitions = Partitions(len(numbers), available, known.generation + 1)
        return self._partitioner.partition(self._topic, None, self._partitions)


def encode_values(values: Sequence[bytes], timestamp_ms: int, codec: int = NONE) -> bytes:
    """Return a batch of these values, all with this timestamp."""
    return seal(*OpenRecords.of_values(values, timestamp_ms, codec).build())


def batches_of(values: Sequence[bytes], most_bytes: int) -> Iterator[Sequence[bytes]]:
    """Yield runs of values. A run has at most that many bytes, or consists of a single larger
    value.
    """
    ends = list(accumulate(map(len, values)))
    start = before = 0
    while start < len(values):
        # Find the last value that ends within the limit by bisection, without a loop over values.
        end = min(bisect_right(ends, before + most_bytes), start + MOST_RECORDS)
        end = max(end, start + 1)
        yield values[start:end]
        start, before = end, ends[end - 1]
