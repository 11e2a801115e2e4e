"""A task of the exactly-once sink: encodes rows into batches for the staging topic."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping

import pyarrow as pa  # type: ignore[import-untyped]  # ships neither stubs nor py.typed

from barnabas.client.admin.admin import Admin
from barnabas.client.producer.batch import CheckedRecord, ProducerRecord
from barnabas.client.producer.delivery import Delivery
from barnabas.client.producer.partitioner import Partitioner, Partitions
from barnabas.client.producer.producer import Producer
from barnabas.clock import SystemClock, SystemRandom
from barnabas.errors import ConfigError
from barnabas.records.compression import CODEC_NAMES
from barnabas.records.record import BatchBuilder
from barnabas.types import TopicPartition
from pyspark_barnabas import staging
from pyspark_barnabas.options import SinkOptions
from pyspark_barnabas.properties import properties_of_clients
from pyspark_barnabas.rows import Columns, records
from pyspark_barnabas.staging import StagedBatch, StagingLost


async def stage(
    options: SinkOptions, columns: Columns, transactional_id: str, rows: Iterator[pa.RecordBatch]
) -> list[StagedBatch]:
    """Write a task's rows to the staging topic; returns their acknowledged places."""
    topic = staging.staging_topic(transactional_id)
    servers, properties = properties_of_clients(options.client)
    async with Admin(servers, **properties.common) as admin:
        await staging.create(admin, topic)
    async with Producer(servers, **properties.producer) as producer:
        stager = _Stager(producer, topic, properties.producer)
        # As in `writer.py`: the JVM's rows come through a blocking iterator.
        while (batch := await asyncio.to_thread(next, rows, None)) is not None:
            for record in records(batch, columns, options.topic):
                await stager.add(record)
        return await stager.finish()


class _Stager:
    """One task's batches: open ones, and those in flight."""

    def __init__(self, producer: Producer, topic: str, properties: Mapping[str, str]) -> None:
        self._producer = producer
        self._topic = topic
        self._batch_size = int(properties["batch.size"])
        self._codec = CODEC_NAMES.index(properties.get("compression.type", "none"))
        self._partitioner = Partitioner(
            properties.get("partitioner", "sticky"), SystemRandom(), self._batch_size
        )
        self._clock = SystemClock()
        self._topics: dict[str, Partitions] = {}
        self._open: dict[TopicPartition, BatchBuilder] = {}
        self._sent: list[tuple[TopicPartition, int, Delivery]] = []

    async def add(self, record: ProducerRecord) -> None:
        checked = self._producer.checked(record)
        target = await self._target(checked)
        builder = self._open.get(target)
        if builder is not None and builder.size_bytes + checked.size_bytes > self._batch_size:
            await self._send(target)
            builder = None
        if builder is None:
            builder = self._open[target] = BatchBuilder(self._codec)
        builder.append(self._clock.wall_ms(), checked.key, checked.value, checked.headers)

    async def finish(self) -> list[StagedBatch]:
        """All batches, acknowledged. Raises the error of any that was refused."""
        for target in list(self._open):
            await self._send(target)
        await self._producer.flush()
        return [self._staged(*each) for each in self._sent]

    async def _send(self, target: TopicPartition) -> None:
        builder = self._open.pop(target)
        place = TopicPartition(self._topic, staging.partition_of(target))
        delivery = await self._producer.send_batch(place, builder.build())
        self._sent.append((target, builder.record_count, delivery))

    def _staged(self, target: TopicPartition, rows: int, delivery: Delivery) -> StagedBatch:
        place = delivery.result()
        if place.offset < 0:
            raise StagingLost(f"a batch for {target} is stored, but its offset is unknown")
        return StagedBatch(place.partition, place.offset, target, rows)

    async def _target(self, record: CheckedRecord) -> TopicPartition:
        topic = self._topics.get(record.topic)
        if topic is None:
            numbers = await self._producer.partitions_for(record.topic)
            topic = self._topics[record.topic] = Partitions(len(numbers), tuple(numbers), 0)
        number = record.partition
        if number is None:
            number = self._partitioner.partition(record.topic, record.key, topic)
            if record.key is None:
                self._partitioner.appended(record.topic, record.size_bytes)
        elif not 0 <= number < topic.partition_count:
            raise ConfigError(
                f"a row is for partition {number} of {record.topic}, which has "
                f"{topic.partition_count}"
            )
        return TopicPartition(record.topic, number)
