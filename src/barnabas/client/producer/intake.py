"""Puts records into batches: checks each record, chooses a partition and waits for room.

    ProducerRecord -- check --> CheckedRecord -- accept, or send, which waits --> Delivery

This is the caller's side of a producer, below the public methods. It is the slow path, where all
decisions are made. In a busy producer, most records require no decision and take the fast path
(`open_batches`). `check` may be called from any thread; all later steps run on the loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from barnabas.client import arguments
from barnabas.client.cluster import Cluster
from barnabas.client.config import ProducerConfig
from barnabas.client.errors import BufferFull, ClientClosed, Unreachable
from barnabas.client.metadata import Metadata
from barnabas.client.producer.accumulator import Accumulator
from barnabas.client.producer.batch import CheckedRecord, ProducerBatch, ProducerRecord
from barnabas.client.producer.delivery import Delivery, RecordMetadata
from barnabas.client.producer.open_batches import OpenBatches
from barnabas.client.producer.partitioner import Partitioner
from barnabas.client.producer.sender import Sender
from barnabas.client.view import TopicView, unknown_partition
from barnabas.clock import Clock
from barnabas.errors import BarnabasError, MessageTooLarge
from barnabas.records.batch import HEADER_BYTES
from barnabas.records.record import RECORD_OVERHEAD_BYTES
from barnabas.types import TopicPartition

if TYPE_CHECKING:
    from barnabas.client.producer.transactions import Transactions

_PATIENCE_MS: Final = 5_000
"""A partition that is still unknown to the brokers after this time is considered nonexistent.

All brokers learn of new partitions much sooner than this, and `max.block.ms` would be too long a
wait for a wrong partition number.
"""
# records with the same wrong partition number wait only once in this time
_REMEMBERED_MS: Final = 1_000
_MOST_REMEMBERED: Final = 1_000

_NO_PARTITION: Final = -1

_new_tuple = tuple.__new__


class BufferMemory:
    """Grants room in `buffer.memory` to one record at a time, which holds the lock `line`.

    Without the lock, small records could overtake a large record again and again.
    """

    def __init__(
        self, accumulator: Accumulator, wake: Callable[[], None], check: Callable[[], None]
    ) -> None:
        self._accumulator = accumulator
        self._wake_sender = wake
        self._check = check  # raises if sending is impossible
        self._changed = asyncio.Event()
        self.line = asyncio.Lock()

    def on_change(self) -> None:
        """Check for room again, because a batch is done or no more records may be sent."""
        self._changed.set()

    async def wait(self, size_bytes: int) -> None:
        """Wait for this much room, while holding `line`. Until then, no batch lingers."""
        if self._accumulator.has_room(size_bytes):
            return
        self._accumulator.flushing += 1
        try:
            while not self._accumulator.has_room(size_bytes):
                # With a full buffer, batches are sent immediately, regardless of linger.ms (see
                # `Accumulator.ready`).
                self._changed.clear()
                self._wake_sender()
                await self._changed.wait()
                self._check()
        finally:
            self._accumulator.flushing -= 1

    def full(self, topic: str, limit_ms: int) -> BufferFull:
        """Return the error for a record that did not get room in time."""
        return BufferFull(
            f"no room for a record for {topic} within {limit_ms} ms (max.block.ms): "
            f"{self._accumulator.used_bytes} bytes are waiting for brokers (buffer.memory)"
        )


class Growth:
    """Waits for partitions that are not in the metadata, in case the topic has just grown."""

    def __init__(self, metadata: Metadata, clock: Clock) -> None:
        self._metadata = metadata
        self._clock = clock
        # (topic, partition) -> when it was last found missing
        self._absent: dict[tuple[str, int], int] = {}

    async def wait_for(self, topic: TopicView, partition: int) -> TopicView:
        """Return the topic once it has the partition. Raises UnknownPartition otherwise.

        The caller sets a time limit, because it is possible that no broker answers.
        """
        began_ms = self._clock.monotonic_ms()
        name = topic.name, partition
        is_answered = began_ms - self._absent.get(name, -_REMEMBERED_MS) < _REMEMBERED_MS
        while partition not in topic.partitions:
            if is_answered:
                raise unknown_partition(topic, partition)
            try:
                view = await self._metadata.refresh()
            except Unreachable:  # the refresh is repeated with backoff
                continue
            topic = view.topics.get(topic.name, topic)
            # The broker that answered may lag behind and not yet know of the new partition.
            is_answered = self._clock.monotonic_ms() - began_ms >= _PATIENCE_MS
            if is_answered:
                if len(self._absent) >= _MOST_REMEMBERED:
                    self._absent.clear()
                self._absent[name] = self._clock.monotonic_ms()
        return topic


class Preparation:
    """Applies a producer's interceptors, then its serializers, to each record (PR-1, PR-10)."""

    def __init__(self, config: ProducerConfig) -> None:
        # This is not imported at the top, because most producers do not need it.
        from barnabas.client.interceptors import PRODUCER_METHODS, interceptor_classes
        from barnabas.client.serialization import serialize, serializer

        key, value = config.key_serializer, config.value_serializer
        self._serialize = serialize
        self._key = None if key is None else serializer(key, "key.serializer")
        self._value = None if value is None else serializer(value, "value.serializer")
        self._interceptors = interceptor_classes(config.interceptor_classes, PRODUCER_METHODS)

    @property
    def is_needed(self) -> bool:
        return bool(self._interceptors or self._key or self._value)

    @property
    def has_interceptors(self) -> bool:
        return bool(self._interceptors)

    def prepare(self, record: ProducerRecord) -> ProducerRecord:
        """Return the record with its key and value as bytes. Raises SerializationError."""
        # Follow Kafka's order (PR-1), in which interceptors see objects, not their bytes.
        record = self._interceptors.on_send(record)
        topic, value, key = record[:3]
        if self._key is not None:
            key = self._serialize(self._key, key, "key", topic)
        if self._value is not None:
            value = self._serialize(self._value, value, "value", topic)
        return record._replace(value=value, key=key)

    def on_outcome(self, delivery: Delivery) -> None:
        """Tell the interceptors the outcome of a record that was queued."""
        error = delivery.exception()
        if error is None:
            self._interceptors.on_acknowledgement(delivery.result(), None)
        else:
            topic, partition = delivery.batch.topic_partition
            metadata = RecordMetadata(topic, partition, -1, delivery.timestamp_ms)
            self._interceptors.on_acknowledgement(metadata, error)

    def on_refused(self, topic: str, partition: int | None, error: BaseException) -> None:
        """Tell the interceptors about a record that was not queued."""
        where = _NO_PARTITION if partition is None else partition
        self._interceptors.on_acknowledgement(RecordMetadata(topic, where, -1, -1), error)

    def close(self) -> None:
        self._interceptors.close()


class Intake:
    """Accepts records from the producer on its loop, and from the threads of a blocking producer.

    It holds the parts of a producer together for the methods of `Producer`.
    """

    def __init__(self, cluster: Cluster, config: ProducerConfig) -> None:
        self._cluster = cluster
        self.config = config
        self._cluster.metadata.creates_topics = config.allow_auto_create_topics
        self.tasks = self._cluster.tasks
        self.max_block_ms = self.config.max_block_ms
        self.buffer_memory = self.config.buffer_memory
        self._clock = self._cluster.seams.clock
        self.accumulator = Accumulator(self.config)
        self.accumulator.check_loop = self._cluster.metadata.check_loop
        self.transactions: Transactions | None = None
        if self.config.transactional_id:
            # This is not imported at the top, because most producers do not need it.
            from barnabas.client.producer.transactions import Transactions

            self.transactions = Transactions(self._cluster, self.config, self.accumulator)
        self.sender = Sender(self._cluster, self.accumulator, self.config, self.transactions)
        if self.transactions is not None:
            self.transactions.on_change = self.sender.wake
        self.partitioner = Partitioner(
            self.config.partitioner, self._cluster.seams.random, self.config.batch_size
        )
        self.memory = BufferMemory(self.accumulator, self.sender.wake, self.check_open)
        self.open_batches = OpenBatches(cluster, config, self.accumulator, self.partitioner)
        self._wall_ms = self._clock.wall_ms
        self.preparation = _preparation(config)
        # Records that join an open batch need no decision, not even about their size.
        self._joins = self.preparation is None and config.batch_size <= config.max_request_size
        self.tasks.add_failure_listener(lambda error: self.memory.on_change())
        self.tasks.add_failure_listener(lambda error: self.open_batches.close())
        if self.transactions is not None:
            self.transactions.on_state = self.open_batches.close
        self._cluster.metadata.add_listener(self.open_batches.close)
        self._growth = Growth(self._cluster.metadata, self._clock)
        self.is_running = False  # between the producer's `start` and `close`

    def _accept(self, record: CheckedRecord) -> Delivery | None:
        """Queue a record without waiting. Returns None if its topic is unknown or there is no room.

        Raises the errors of `send`.
        """
        topic = self._cluster.metadata.view.topics.get(record.topic)
        # Other records are waiting for room, and must not be overtaken.
        if topic is None or self.memory.line.locked():
            return None
        if record.partition is not None and record.partition not in topic.partitions:
            return None
        if not self.accumulator.has_room(record.size_bytes):
            return None
        return self._append(record, topic)

    def _leave(self, topic: str, size_bytes: int) -> None:
        """End the partitioner's stay at a batch if it is full, so that no other record would fit.

        Otherwise, a new batch would be started for only one or two records.
        """
        left_bytes = self.partitioner.stays_bytes(topic)
        if left_bytes <= size_bytes + HEADER_BYTES:
            self.partitioner.on_appended(topic, left_bytes)

    def check(self, record: ProducerRecord) -> CheckedRecord:
        """Return the record to send, with mutable fields copied (PR-1). Any thread may call this.

        Calls interceptors and serializers. Raises the errors of `send` if the record cannot be
        sent, now or later.
        """
        self.check_open()
        if self.preparation is not None and isinstance(record, ProducerRecord):
            record = self.preparation.prepare(record)
        checked = arguments.checked_record(record, self._cluster.metadata.view.topics)
        most = self.config.max_request_size
        if checked.size_bytes > most:
            raise MessageTooLarge(
                f"value: a record of {checked.size_bytes} bytes for {checked.topic} is larger "
                f"than {most} (max.request.size)"
            )
        return checked

    def check_plain(self, topic: str, value: Any, key: Any) -> CheckedRecord | None:
        """Check a value and a key, as `check` does. Returns None if `check` has to decide."""
        # This method only accepts records. Leave all others to `check`, which raises the errors.
        if not self._joins or not self.is_running or self.tasks.error is not None:
            return None
        if self.transactions is not None and not self.transactions.is_open:
            return None
        if type(value) is not bytes or (key is not None and type(key) is not bytes):
            return None
        size_bytes = len(value) + RECORD_OVERHEAD_BYTES + (0 if key is None else len(key))
        try:
            if topic not in self._cluster.metadata.view.topics:
                return None
        except TypeError:  # not a valid topic name: `check` rejects it
            return None
        if size_bytes > self.config.max_request_size:
            return None
        record: CheckedRecord = _new_tuple(
            CheckedRecord, (topic, value, key, None, None, (), size_bytes)
        )
        return record

    async def send_record(self, record: ProducerRecord) -> Delivery:
        """Check a record and queue it. Raises the errors of `Producer.send`."""
        try:
            checked = self.check(record)
        except BarnabasError as error:
            self.on_refused(error, record)
            raise
        return await self.send(checked)

    async def send(self, record: CheckedRecord) -> Delivery:
        """Queue a checked record once there is room. Raises the errors of `Producer.send`."""
        try:
            self.check_open()
            delivery = self._accept(record) or await self._accept_later(record)
        except BarnabasError as error:
            self.on_refused(error, record)
            raise
        if delivery.index == 0:
            # After starting a new batch, let the sender send the previous one. Otherwise, a caller
            # that never waits would keep the sender from running until the buffer is full.
            await asyncio.sleep(0)
        return delivery

    def accept(self, record: CheckedRecord) -> Delivery | None:
        """Queue a checked record, as `send` does. Returns None if this would require waiting."""
        try:
            self.check_open()
            return self._accept(record)
        except BarnabasError as error:
            self.on_refused(error, record)
            raise

    def knows_place(self, record: CheckedRecord) -> bool:
        """Return whether the metadata contains the record's topic, and its partition if given."""
        topic = self._cluster.metadata.view.topics.get(record.topic)
        return topic is not None and (
            record.partition is None or record.partition in topic.partitions
        )

    def knows_topic(self, topic: str) -> bool:
        """Return whether the topic's metadata is known. May be called from any thread."""
        return topic in self._cluster.metadata.view.topics

    async def wait_for_topic(self, topic: str) -> None:
        """Wait until the topic is known. Raises the errors of `send`."""
        await self._cluster.metadata.topic(topic, self.config.max_block_ms)

    @property
    def prepares(self) -> bool:
        """Whether each record is processed by interceptors or serializers."""
        return self.preparation is not None

    async def topic(self, name: str) -> TopicView:
        """Return the topic's metadata. Raises the errors of `send`."""
        self.check_open()
        return await self._cluster.metadata.topic(
            arguments.topic_name(name), self.config.max_block_ms
        )

    def unfinished_count(self) -> int:
        """The number of accepted records that have no outcome yet."""
        return sum(batch.record_count for batch in self.accumulator.unfinished_batches)

    def acknowledged_count(self) -> int:
        """The number of records that were acknowledged since the start."""
        return self.accumulator.statistics.acknowledged_records

    def wall_ms(self) -> int:
        return self._wall_ms()

    def now_ms(self) -> int:
        return self._clock.monotonic_ms()

    def check_open(self) -> None:
        """Raise an error unless records can be sent."""
        self.check_running()
        if self.transactions is not None:
            self.transactions.check_open()

    def check_running(self) -> None:
        self.tasks.check()
        if not self.is_running or not self.sender.is_running:
            raise ClientClosed("the producer is not running: call start() first, not after close")

    def on_refused(
        self, error: BarnabasError, record: ProducerRecord | CheckedRecord | None = None
    ) -> None:
        """Record that a record is not sent, so that an open transaction can only be aborted."""
        if self.transactions is not None:
            self.transactions.on_refused(error)
        if self.preparation is not None and record is not None:
            self.preparation.on_refused(record.topic, record.partition, error)

    def _append(self, record: CheckedRecord, topic: TopicView) -> Delivery:
        partition = record.partition
        is_free = partition is None and record.key is None
        if is_free:
            # Records may have joined without the partitioner, which must count their bytes.
            batch = self.open_batches.count(record.topic)
            if batch and batch.size_bytes + record.size_bytes > self.config.batch_size:
                self._leave(record.topic, record.size_bytes)
        if partition is None:
            partition = self.partitioner.partition(record.topic, record.key, topic.choice)
        else:
            self.check_partition(topic, partition)
        timestamp_ms = record.timestamp_ms
        if timestamp_ms is None:
            timestamp_ms = self._wall_ms()
        batch, index = self.accumulator.append(
            TopicPartition(record.topic, partition),
            record,
            self._clock.monotonic_ms(),
            timestamp_ms,
        )
        if is_free:
            self.partitioner.on_appended(record.topic, record.size_bytes)
        if self._may_keep_open():
            self.open_batches.keep(batch, is_free=is_free)
        # The sender sleeps while a growing batch waits for its linger.ms, so wake it only for a new
        # or a full batch (PR-3).
        if index == 0:
            self.watch(batch)
        elif batch.size_bytes >= self.config.batch_size:
            self.sender.wake()
        delivery = Delivery(batch, index, timestamp_ms)
        if self.preparation is not None and self.preparation.has_interceptors:
            batch.when_done(partial(self.preparation.on_outcome, delivery))
        return delivery

    def _may_keep_open(self) -> bool:
        """Return whether a batch may be open.

        The records that join an open batch skip the checks, so a batch may be open only while every
        record would pass them.
        """
        if not self._joins or not self.is_running or self.memory.line.locked():
            return False
        return self.transactions is None or self.transactions.is_open

    def watch(self, batch: ProducerBatch) -> None:
        """Watch a new batch, whose outcome frees memory and may decide a transaction."""
        batch.when_done(self.memory.on_change)
        self._cluster.metadata.on_use(batch.topic_partition.topic)
        if self.transactions is not None:
            self.transactions.track(batch.topic_partition, batch)
        self.sender.wake()

    def check_partition(self, topic: TopicView, partition: int) -> None:
        if partition not in topic.partitions:
            raise unknown_partition(topic, partition)

    async def topic_with(self, name: str, partitions: Iterable[int]) -> TopicView:
        """Return the topic's metadata, waiting for these partitions as `send` does."""
        limit_ms = self.config.max_block_ms
        topic = await self.topic(name)
        try:
            async with asyncio.timeout(limit_ms / 1000):
                for partition in partitions:
                    topic = await self._growth.wait_for(topic, partition)
        except TimeoutError:
            pass  # no broker answered, so use the known metadata
        for partition in partitions:
            self.check_partition(topic, partition)
        return topic

    # ---- waiting ----

    async def _accept_later(self, record: CheckedRecord) -> Delivery:
        """Queue a record once its topic is known and there is room, within `max.block.ms`."""
        limit_ms = self.config.max_block_ms
        metadata = self._cluster.metadata
        try:
            async with asyncio.timeout(limit_ms / 1000):
                topic = await metadata.topic(record.topic, limit_ms)
                if record.partition is not None:
                    topic = await self._growth.wait_for(topic, record.partition)
                async with self.memory.line:
                    self.open_batches.close()  # no record may overtake those waiting
                    await self.memory.wait(record.size_bytes)
                    return self._append(record, topic)
        except TimeoutError:
            # The error depends on what took so long: the topic, the partition or the buffer.
            if not self.knows_place(record) and self.knows_topic(record.topic):
                topic = metadata.view.topics[record.topic]
                raise unknown_partition(topic, record.partition) from None
            if self.knows_topic(record.topic):
                raise self.memory.full(record.topic, limit_ms) from None
            # Stop requesting the topic, because a mistyped name would be looked up for five
            # minutes.
            last_said = metadata.view.topic_error(record.topic)
            metadata.forget(record.topic)
            raise last_said or Unreachable(
                f"topic {record.topic!r}: no broker has described it within {limit_ms} ms "
                "(max.block.ms)"
            ) from None


def _preparation(config: ProducerConfig) -> Preparation | None:
    """Return the interceptors and serializers, or None if there are none, as in most producers."""
    given = (config.key_serializer, config.value_serializer, config.interceptor_classes)
    if all(each is None for each in given):
        return None
    preparation = Preparation(config)
    return preparation if preparation.is_needed else None
