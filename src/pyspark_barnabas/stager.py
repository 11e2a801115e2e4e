"""Encodes rows into batches for the staging topic, in a task of the exactly-once sink."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa  # type: ignore[import-untyped]  # ships neither stubs nor py.typed

from barnabas.client.admin.admin import Admin
from barnabas.client.producer.batch import CheckedRecord, ProducerRecord
from barnabas.client.producer.column_partitions import chosen_partitions, given_partitions
from barnabas.client.producer.column_rows import ColumnRows
from barnabas.client.producer.delivery import Delivery
from barnabas.client.producer.partitioner import Partitioner
from barnabas.client.producer.producer import Producer
from barnabas.clock import SystemRandom
from barnabas.records.batch import seal
from barnabas.records.compression import CODEC_NAMES
from barnabas.records.record import BatchBuilder
from barnabas.types import TopicPartition
from pyspark_barnabas import staging
from pyspark_barnabas.options import SinkOptions
from pyspark_barnabas.properties import properties_of_clients
from pyspark_barnabas.rows import Columns, TopicColumns, records, tables, topic_columns
from pyspark_barnabas.staging import StagedBatch, StagingLost


async def stage(
    options: SinkOptions, columns: Columns, transactional_id: str, rows: Iterator[pa.RecordBatch]
) -> list[StagedBatch]:
    """Write a task's rows to the staging topic, which is created if necessary, and return their
    places once they are acknowledged."""
    topic = staging.staging_topic(transactional_id)
    await create_staging_topic(options, topic)
    servers, properties = properties_of_clients(options.client)
    async with Producer(servers, **properties.producer) as producer:
        return await _stage(options, columns, rows, _Stager(producer, producer, topic))


async def stage_job(
    options: SinkOptions, columns: Columns, topic: str, rows: Iterator[pa.RecordBatch]
) -> list[StagedBatch]:
    """Write a task's rows to a staging topic that the driver has created, and return their places
    once they are acknowledged.

    Neither this task nor a broker may create the topic. Spark may cancel this task only after the
    driver has aborted the job, and a topic that the task creates after that would never be deleted.
    """
    servers, properties = properties_of_clients(options.client)
    sending = {**properties.producer, **staging.CREATES_NOTHING}
    async with (
        Producer(servers, **properties.producer) as planner,
        Producer(servers, **sending) as producer,
    ):
        return await _stage(options, columns, rows, _Stager(planner, producer, topic))


async def create_staging_topic(options: SinkOptions, topic: str) -> None:
    """Create the staging topic if it does not exist. Raises the same errors as `staging.create`."""
    servers, properties = properties_of_clients(options.client)
    async with Admin(servers, **properties.common) as admin:
        await staging.create(admin, topic)


async def _stage(
    options: SinkOptions, columns: Columns, rows: Iterator[pa.RecordBatch], stager: _Stager
) -> list[StagedBatch]:
    async for table in tables(rows):
        found = topic_columns(table, columns, options.topic)
        if found is None:
            await stager.stage_records(records(table, columns, options.topic))
        for each in found or ():
            await stager.stage_columns(each)
    return await stager.finish()


class _Stager:
    """Stages the batches of one task. `planner` looks up the target topics, and `producer` sends
    the batches.
    """

    def __init__(self, planner: Producer, producer: Producer, topic: str) -> None:
        self._producer = producer
        self._topic = topic
        self._intake = planner.intake
        self._config = self._intake.config
        self._codec = CODEC_NAMES.index(self._config.compression_type)
        self._partitioner = Partitioner(
            self._config.partitioner, SystemRandom(), self._config.batch_size
        )
        self._sent: list[tuple[TopicPartition, int, Delivery]] = []

    async def stage_columns(self, given: TopicColumns) -> None:
        """Send the rows of one topic."""
        now_ms, most = self._intake.wall_ms(), self._config.max_request_size
        rows = ColumnRows.of(given.values, given.keys, now_ms, most)
        view = await self._intake.topic(given.topic)
        if given.partitions is None:
            chosen = chosen_partitions(self._partitioner, given.topic, view.choice, rows)
        else:
            chosen = given_partitions(given.partitions, len(rows.times))
        for number, part in rows.by_partition(chosen):
            self._intake.check_partition(view, number)
            target = TopicPartition(given.topic, number)
            for batch, _ in part.batches(self._config.batch_size, self._codec):
                await self._send(target, seal(*batch.build()), batch.count)

    async def stage_records(self, rows: Iterator[ProducerRecord]) -> None:
        """Send rows that cannot be sent as columns; see `topic_columns`."""
        builders: dict[TopicPartition, BatchBuilder] = {}
        for record in rows:
            checked = self._intake.check(record)
            target = await self._target(checked)
            builder = builders.setdefault(target, BatchBuilder(self._codec))
            # A record that is larger than a batch gets a batch of its own.
            full = builder.size_bytes + checked.size_bytes > self._config.batch_size
            if full and builder.record_count:
                await self._send(target, builder.build(), builder.record_count)
                builder = builders[target] = BatchBuilder(self._codec)
            now_ms = self._intake.wall_ms()
            builder.append(now_ms, checked.key, checked.value, checked.headers)
        for target, builder in builders.items():
            await self._send(target, builder.build(), builder.record_count)

    async def finish(self) -> list[StagedBatch]:
        """Wait until all batches are acknowledged, and return them. Raises the error if a batch is
        rejected.
        """
        await self._producer.flush()
        return [self._staged(*each) for each in self._sent]

    async def _send(self, target: TopicPartition, batch: bytes | bytearray, rows: int) -> None:
        place = TopicPartition(self._topic, staging.partition_of(target))
        delivery = await self._producer.send_batch(place, batch)
        self._sent.append((target, rows, delivery))

    def _staged(self, target: TopicPartition, rows: int, delivery: Delivery) -> StagedBatch:
        place = delivery.result()
        # The broker recognised a resent batch, but no longer had its offset
        # (DuplicateSequenceNumber).
        if place.offset < 0:
            raise StagingLost(f"a batch for {target} is stored, but its offset is unknown")
        return StagedBatch(place.partition, place.offset, target, rows)

    async def _target(self, record: CheckedRecord) -> TopicPartition:
        view = await self._intake.topic(record.topic)
        number = record.partition
        if number is None:
            number = self._partitioner.partition(record.topic, record.key, view.choice)
            if record.key is None:
                # Only records without a key advance the sticky partition (KIP-794).
                self._partitioner.on_appended(record.topic, record.size_bytes)
        else:
            self._intake.check_partition(view, number)
        return TopicPartition(record.topic, number)
