"""Sends values without keys and headers as whole batches: the quick way for files of lines."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from barnabas.cli.records.value_batches import batches_of, encode_values
from barnabas.client.producer.delivery import Delivery
from barnabas.client.producer.partitioner import Partitioner, Partitions
from barnabas.client.producer.producer import Producer
from barnabas.clock import SystemClock, SystemRandom
from barnabas.records.compression import CODEC_NAMES
from barnabas.types import TopicPartition

_FEWEST = 32
_RECORD_OVERHEAD_BYTES = 100
_PER_RECORD = frozenset({"partitioner", "partitioner_class", "max_request_size"})
"""Options that say how records are put together in batches."""


def suits(options: Mapping[str, Any], given: Mapping[str, Any]) -> bool:
    """Whether the producer's options, as they were given, leave it to us what a batch is."""
    return not _PER_RECORD & given.keys() and int(options["batch_size"]) > _RECORD_OVERHEAD_BYTES


class ValueSender:
    """Whole batches to one partition, or to one after the other (PR-2: sticky)."""

    def __init__(
        self, producer: Producer, topic: str, partition: int | None, options: Mapping[str, Any]
    ) -> None:
        self._producer = producer
        self._topic = topic
        self._partition = partition
        self._batch_bytes = int(options["batch_size"])
        self._codec = CODEC_NAMES.index(options["compression_type"])
        self._partitioner = Partitioner("sticky", SystemRandom(), self._batch_bytes)
        self._partitions: Partitions | None = None
        self._clock = SystemClock()

    def takes(self, values: Sequence[bytes]) -> bool:
        """Whether they are many, and none is too large for a batch.

        Few come from a slow pipe: those are collected in a batch, for `linger.ms`.
        """
        return len(values) >= _FEWEST and max(map(len, values)) <= self._batch_bytes

    async def send(self, values: Sequence[bytes]) -> AsyncIterator[Delivery]:
        """The delivery of each batch's first record. Raises as the producer's `send`."""
        for part in batches_of(values, self._batch_bytes):
            partition = await self._next_partition()
            batch = encode_values(part, self._clock.wall_ms(), self._codec)
            place = TopicPartition(self._topic, partition)
            yield await self._producer.send_batch(place, batch)
            self._partitioner.appended(self._topic, len(batch))

    async def _next_partition(self) -> int:
        if self._partition is not None:
            return self._partition
        if self._partitions is None:
            numbers = await self._producer.partitions_for(self._topic)
            self._partitions = Partitions(len(numbers), tuple(numbers), 0)
        return self._partitioner.partition(self._topic, None, self._partitions)
