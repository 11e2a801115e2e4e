"""The producer: records in, one outcome for each.

    send -> partitioner -> accumulator -> (sender task) -> broker -> Delivery

No accepted record is lost silently: it is acknowledged, or its Delivery raises (PR-8).
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Unpack

from barnabas.client import arguments
from barnabas.client.channel import Seams, system_seams
from barnabas.client.cluster import Cluster
from barnabas.client.config import ProducerConfig, ProducerOptions, Servers, configure, split
from barnabas.client.errors import BufferFull, ClientClosed, UnknownPartition, Unreachable
from barnabas.client.producer.accumulator import Accumulator
from barnabas.client.producer.batch import (
    CheckedRecord,
    ProducerBatch,
    ProducerRecord,
    RecordOptions,
)
from barnabas.client.producer.delivery import Delivery, flushed
from barnabas.client.producer.partitioner import Partitioner
from barnabas.client.producer.sender import Sender
from barnabas.client.view import TopicView
from barnabas.errors import BarnabasError, ConfigError, CorruptData, MessageTooLarge
from barnabas.records.batch import CODEC_MASK, HEADER_BYTES, read_header, seal, verify_crc
from barnabas.types import TopicPartition

if TYPE_CHECKING:
    from barnabas.client.consumer.committed import GroupMetadata, OffsetAndMetadata
    from barnabas.client.producer.transactions import Transactions


class Producer:
    """Sends records to topics; options are Kafka's, with underscores (see `ProducerOptions`).

    Used within one event loop, as `async with Producer(...)` or between `start` and `close`.
    """

    def __init__(
        self,
        bootstrap_servers: Servers = None,
        *,
        seams: Seams | None = None,
        **options: Unpack[ProducerOptions],
    ) -> None:
        servers, given = split(bootstrap_servers, options)
        common, self._config = configure(ProducerConfig, given)
        self._cluster = Cluster(servers, common, seams or system_seams())
        self._cluster.metadata.creates_topics = self._config.allow_auto_create_topics
        self.tasks = self._cluster.tasks
        self.max_block_ms = self._config.max_block_ms
        self.buffer_memory = self._config.buffer_memory
        self._clock = self._cluster.seams.clock
        self._accumulator = Accumulator(self._config)
        self._transactions: Transactions | None = None
        if self._config.transactional_id:
            # Imported only here: most producers start without it.
            from barnabas.client.producer.transactions import Transactions

            self._transactions = Transactions(self._cluster, self._config, self._accumulator)
        self._sender = Sender(self._cluster, self._accumulator, self._config, self._transactions)
        if self._transactions is not None:
            self._transactions.on_change = self._sender.wake
        self._partitioner = Partitioner(
            self._config.partitioner, self._cluster.seams.random, self._config.batch_size
        )
        self._line = asyncio.Lock()  # senders that wait for room, in order
        self._room = asyncio.Event()
        self.tasks.on_failure(lambda error: self._room.set())
        self._running = False

    # ---- life ----

    async def start(self) -> None:
        """Connect. Raises NoBrokersAvailable."""
        await self._cluster.start()
        self._sender.start()
        self._running = True

    async def flush(self) -> None:
        """Return once everything accepted so far has its outcome; raises none of them.

        Raises ClientFailed if the producer has failed, so that nothing more is sent.
        """
        await flushed(self._accumulator, self._sender.wake)
        self.tasks.check()

    async def close(self) -> None:
        """Flush, then disconnect. Records that cannot be sent fail at `delivery.timeout.ms`.

        An open transaction is aborted. Raises as `flush`.
        """
        if not self._running:
            return
        self._running = False
        try:
            if self._transactions is not None:
                await self._transactions.close()
            await self.flush()
        finally:
            await self._sender.close()
            await self._cluster.close()
            self._accumulator.fail_waiting(ClientClosed("the producer was closed before that"))

    async def __aenter__(self) -> Producer:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    # ---- transactions ----

    async def init_transactions(self) -> None:
        """Take over the `transactional.id` (PR-7): once, before the first transaction.

        An older producer of the same id is fenced, its open transaction is aborted, and what it
        committed is visible when this returns. Raises InvalidTransactionTimeout,
        TransactionalIdAuthorizationFailed, and after `max.block.ms` the last transient error.
        """
        await self._required_transactions().init()

    def begin_transaction(self) -> None:
        """Begin a transaction of all records sent from now on. Raises InvalidTxnState."""
        self._required_transactions().begin()

    async def send_offsets_to_transaction(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata | int], group: GroupMetadata | str
    ) -> None:
        """Commit a consumer group's offsets with the transaction (KIP-447).

        `group`: `Consumer.group_metadata()`, so that a member that the group has removed is
        refused; a bare group id is not checked like that. Raises as `commit_transaction`.
        """
        await self._required_transactions().send_offsets(offsets, group)

    async def commit_transaction(self) -> None:
        """Flush, then make all of the transaction visible at once.

        Raises the error of any of its records, or of the coordinator. ProducerFenced,
        TransactionalIdAuthorizationFailed and InvalidTxnState are final: close the producer. After
        Unreachable or a retriable error of the commit itself call this again. After any other
        error call `abort_transaction`, then begin a new one.
        """
        await self._required_transactions().commit()

    async def abort_transaction(self) -> None:
        """Undo the transaction: read_committed consumers never see it. Records that were not sent
        fail with TransactionAborted. Raises as `commit_transaction`."""
        await self._required_transactions().abort()

    def _required_transactions(self) -> Transactions:
        if self._transactions is None:
            raise ConfigError("this producer has no transactions: give it a transactional.id")
        if not self._running:
            raise ClientClosed("the producer is not running: call start() first, not after close")
        return self._transactions

    # ---- sending ----

    async def send(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None = None,
        **rest: Unpack[RecordOptions],
    ) -> Delivery:
        """Accept a record; returns once it is queued. Await the Delivery for its outcome.

        Raises ValueError, TypeError or MessageTooLarge for an invalid record, the topic's
        KafkaError (such as UnknownTopicOrPartition), and after `max.block.ms` BufferFull if there
        is no room, Unreachable if no broker knows the topic.
        """
        return await self.send_record(ProducerRecord(topic, value, key, **rest))

    async def send_record(self, record: ProducerRecord) -> Delivery:
        """As `send`."""
        try:
            checked = self.checked(record)
            delivery = self._accept(checked) or await self._accept_later(checked)
        except BarnabasError as error:
            self.refused(error)
            raise
        if delivery.index == 0:
            # A new batch, so the last one may leave: a caller that never waits would otherwise
            # keep the sender from running until the buffer is full.
            await asyncio.sleep(0)
        return delivery

    async def send_checked(self, record: CheckedRecord) -> Delivery:
        """As `send`, for a record that `checked` returned."""
        try:
            self._check_open()
            delivery = self._accept(record) or await self._accept_later(record)
        except BarnabasError as error:
            self.refused(error)
            raise
        if delivery.index == 0:
            await asyncio.sleep(0)  # as in `send_record`
        return delivery

    async def send_many(self, records: Iterable[ProducerRecord]) -> list[Delivery]:
        """As `send` for each record in order; ends at the first that is refused."""
        walk = arguments.walked(records, "records")
        return [await self.send_record(record) for record in walk]

    async def send_batch(
        self, topic_partition: TopicPartition, batch: bytes | bytearray | memoryview
    ) -> Delivery:
        """Queue a whole record batch of `Consumer.fetch_batches`; the delivery of its first record.

        Only its offsets, producer and sequences change. Raises as `send`, and CorruptData if it is
        not a batch or fails its checksum.
        """
        self._check_open()
        name = arguments.topic_partition(topic_partition)
        encoded = _as_new(arguments.data(batch, "batch") or b"")
        most = self._config.max_request_size
        if len(encoded) > most:
            raise MessageTooLarge(
                f"batch: {len(encoded)} bytes for {name}, more than {most} (max.request.size)"
            )
        topic = await self._cluster.metadata.topic(name.topic, self._config.max_block_ms)
        self._check_partition(topic, name.partition)
        async with self._line:
            await self._wait_for_room(len(encoded))
            now_ms = self._clock.monotonic_ms()
            made = self._accumulator.append_encoded(name, encoded, now_ms)
            self._watch(made)
            self._sender.wake()
        return Delivery(made, 0, read_header(encoded).base_timestamp)

    def accept(self, record: ProducerRecord) -> Delivery | None:
        """Queue a record without waiting; None if its topic is not known yet or there is no room.

        Raises as `send` does.
        """
        return self._accept(self.checked(record))

    def _accept(self, record: CheckedRecord) -> Delivery | None:
        topic = self._cluster.metadata.view.topics.get(record.topic)
        if topic is None or self._line.locked():
            return None
        if not self._accumulator.has_room(record.size_bytes):
            return None
        return self._append(record, topic)

    def checked(self, record: ProducerRecord) -> CheckedRecord:
        """The record to send, with copies of mutable fields (PR-1); in any thread.

        Raises as `send` for a record that cannot be sent, or not now.
        """
        self._check_open()
        checked = arguments.checked_record(record, self._cluster.metadata.view.topics)
        most = self._config.max_request_size
        if checked.size_bytes > most:
            raise MessageTooLarge(
                f"value: a record of {checked.size_bytes} bytes for {checked.topic} is larger "
                f"than {most} (max.request.size)"
            )
        return checked

    async def partitions_for(self, topic: str) -> list[int]:
        """The numbers of a topic's partitions, as a broker has them now; also between transactions.
        Raises as `send`."""
        self._check_running()
        metadata = self._cluster.metadata
        metadata.forget(arguments.topic_name(topic))
        return list((await metadata.topic(topic, self._config.max_block_ms)).partitions)

    def knows_topic(self, topic: str) -> bool:
        """Whether the topic's metadata is known; in any thread."""
        return topic in self._cluster.metadata.view.topics

    async def wait_for_topic(self, topic: str) -> None:
        """Return once the topic is known. Raises as `send`."""
        await self._cluster.metadata.topic(topic, self._config.max_block_ms)

    def _check_open(self) -> None:
        """Raise unless a record may be sent now."""
        self._check_running()
        if self._transactions is not None:
            self._transactions.check_open()

    def _check_running(self) -> None:
        self.tasks.check()
        if not self._running or not self._sender.is_running:
            raise ClientClosed("the producer is not running: call start() first, not after close")

    def refused(self, error: BarnabasError) -> None:
        """A record of the open transaction, if any, is not sent: it can only be aborted."""
        if self._transactions is not None:
            self._transactions.refused(error)

    def _append(self, record: CheckedRecord, topic: TopicView) -> Delivery:
        partition = record.partition
        if partition is None:
            partition = self._partitioner.partition(record.topic, record.key, topic.choice)
            if record.key is None:
                self._partitioner.appended(record.topic, record.size_bytes)
        else:
            self._check_partition(topic, partition)
        timestamp_ms = record.timestamp_ms
        if timestamp_ms is None:
            timestamp_ms = self._clock.wall_ms()
        batch, index = self._accumulator.append(
            TopicPartition(record.topic, partition),
            record,
            self._clock.monotonic_ms(),
            timestamp_ms,
        )
        if index == 0:
            self._watch(batch)
        if index == 0 or batch.size_bytes >= self._config.batch_size:
            self._sender.wake()
        return Delivery(batch, index, timestamp_ms)

    def _watch(self, batch: ProducerBatch) -> None:
        """Watch a new batch: its end makes room, and a transaction waits for it."""
        batch.when_done(self._room.set)
        if self._transactions is not None:
            self._transactions.sending(batch.topic_partition, batch)

    def _check_partition(self, topic: TopicView, partition: int) -> None:
        if partition not in topic.partitions:
            raise UnknownPartition(
                f"topic {topic.name!r} has partitions 0 to {len(topic.partitions) - 1}, "
                f"not {partition}"
            )

    # ---- waiting ----

    async def _accept_later(self, record: CheckedRecord) -> Delivery:
        """Queue a record once its topic is known and there is room, within `max.block.ms`."""
        limit_ms = self._config.max_block_ms
        metadata = self._cluster.metadata
        try:
            async with asyncio.timeout(limit_ms / 1000):
                topic = await metadata.topic(record.topic, limit_ms)
                partition = record.partition
                if partition is not None and partition not in topic.partitions:
                    topic = (await metadata.refresh()).topics.get(record.topic, topic)
                async with self._line:
                    await self._wait_for_room(record.size_bytes)
                    return self._append(record, topic)
        except TimeoutError:
            if self.knows_topic(record.topic):
                raise BufferFull(
                    f"no room for a record for {record.topic} within {limit_ms} ms (max.block.ms): "
                    f"{self._accumulator.used_bytes} bytes are waiting for brokers (buffer.memory)"
                ) from None
            last_said = metadata.view.topic_error(record.topic)
            metadata.forget(record.topic)
            raise last_said or Unreachable(
                f"topic {record.topic!r}: no broker has described it within {limit_ms} ms "
                "(max.block.ms)"
            ) from None

    async def _wait_for_room(self, size_bytes: int) -> None:
        while not self._accumulator.has_room(size_bytes):
            self._room.clear()
            self._sender.wake()  # a full buffer sends lingering batches
            await self._room.wait()
            self._check_open()


def _as_new(batch: bytes) -> bytes:
    """A stored batch as if it was never sent: without offsets, producer and transaction."""
    header = read_header(batch)
    if header.magic != 2 or header.is_control or header.size_bytes != len(batch):
        raise CorruptData(f"batch: {len(batch)} bytes are not one record batch of magic 2")
    if not verify_crc(batch, 0, header):
        raise CorruptData("batch: the checksum is wrong")
    new = header._replace(
        base_offset=0,
        partition_leader_epoch=-1,
        attributes=header.attributes & CODEC_MASK,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
    )
    return bytes(seal(new, memoryview(batch)[HEADER_BYTES:]))
