"""Implements the producer, which accepts records and reports one outcome for each of them.

    send -> partitioner -> accumulator -> (sender task) -> broker -> Delivery

No accepted record is lost without notice: either it is acknowledged, or its Delivery raises an
error (PR-8).
"""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Unpack, overload

from barnabas.client import arguments
from barnabas.client.channel import Seams, system_seams
from barnabas.client.cluster import Cluster
from barnabas.client.config import ProducerConfig, ProducerOptions, Servers, configure, split
from barnabas.client.errors import (
    ClientClosed,
    RecordsPurged,
    closed_too_early,
)
from barnabas.client.lost_records import say_lost
from barnabas.client.producer.batch import (
    ColumnOptions,
    ProducerRecord,
    SendOptions,
)
from barnabas.client.producer.batch_delivery import BatchDeliveries, BatchDelivery, OnDelivery
from barnabas.client.producer.delivery import Delivery, wait_until_flushed
from barnabas.client.producer.intake import Intake
from barnabas.counted import counted
from barnabas.errors import ConfigError, CorruptData, MessageTooLarge
from barnabas.records.batch import CODEC_MASK, HEADER_BYTES, read_header, seal, verify_crc
from barnabas.types import TopicPartition

if TYPE_CHECKING:
    from barnabas.client.consumer.committed import GroupMetadata, OffsetAndMetadata
    from barnabas.client.producer.transaction_scope import TransactionScope
    from barnabas.client.producer.transactions import Transactions


class Producer:
    """Sends records to topics, within one event loop.

    The options are Kafka's (see `ProducerConfig`). They are passed as keyword arguments with
    underscores, as a mapping with Kafka's names (instead of the servers), or both. Text is
    converted to the type of the option, so a properties file can be passed unchanged. An option
    that is unknown or invalid raises ConfigError.

    Use it as `async with Producer(...)`, or between `start` and `close`. If the event loop ends
    before the producer is closed, the producer continues to send accepted records for up to five
    seconds, and a line on stderr reports how many remain unsent.

    Example::

        async with Producer({"bootstrap.servers": "localhost:9092", "linger.ms": 5}) as producer:
            delivery = await producer.send("orders", b"a book", key=b"customer 7")
            print((await delivery).offset)
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
        self.intake = Intake(self._cluster, self._config)
        self._join = self.intake.open_batches.join
        self._is_let_go = False  # its loop has ended, which was reported

    # ---- lifecycle ----

    async def start(self) -> None:
        """Connect. Raises NoBrokersAvailable."""
        await self._cluster.start()
        self.intake.sender.on_cancelled = self._let_go
        self.intake.sender.start()
        self.intake.is_running = True

    async def flush(self, timeout_ms: float | None = None) -> None:
        """Wait until all records accepted so far have an outcome. Their errors are not raised.

        Args:
            timeout_ms: the longest time to wait; None: as long as it takes, which is
                `delivery.timeout.ms` at most. Unacknowledged records stay queued.

        Raises:
            TimeoutError: records are left after `timeout_ms`.
            ClientFailed: the producer has failed, so nothing more is sent.
        """
        limit_s = _seconds(timeout_ms)
        self._cluster.metadata.check_loop()
        try:
            async with asyncio.timeout(limit_s):
                await wait_until_flushed(self.intake.accumulator, self.intake.sender.wake)
        except TimeoutError:
            raise TimeoutError(
                f"{counted(self.intake.unfinished_count(), 'record')} not acknowledged after "
                "timeout_ms, and still queued"
            ) from None
        self.intake.tasks.check()

    async def close(self, timeout_ms: float | None = None) -> None:
        """Flush, then disconnect. Any open transaction is aborted. Further calls do nothing.

        Args:
            timeout_ms: the longest time to wait; None: as long as it takes, which for records that
                cannot be sent is `delivery.timeout.ms`. Records without an outcome by then fail
                with ClientClosed; those that were sent may still be stored.

        Raises:
            ClientFailed: as in `flush`.
        """
        if not self.intake.is_running:
            return
        limit_s = _seconds(timeout_ms)
        self._cluster.metadata.check_loop()
        # No records are accepted from this point on.
        self.intake.is_running = False
        self.intake.open_batches.close()
        try:
            async with asyncio.timeout(limit_s):
                if self.intake.transactions is not None:
                    await self.intake.transactions.close()
                await self.flush()
        except TimeoutError:
            self.intake.accumulator.fail_all(closed_too_early())
        finally:
            # Nothing is sent from this point on, so a record without an outcome can only fail.
            await self.intake.sender.close()
            await self._cluster.close()
            self.intake.accumulator.fail_waiting(
                ClientClosed("the producer was closed before that")
            )
            if self.intake.preparation is not None:
                self.intake.preparation.close()

    def purge(self) -> int:
        """Fail all records that are not in flight with RecordsPurged. Returns their number.

        A batch that was sent but not yet answered still gets its outcome. An open transaction that
        loses records in this way can only be aborted.
        """
        self.intake.check_running()
        error = RecordsPurged("the record was not sent: purge() was called before")
        return self.intake.accumulator.fail_waiting(error)

    def statistics(self) -> dict[str, float]:
        """Return figures about the producer's work and contents, by name. Names include the units.

        Names with `_total` are counts since the start. The call is cheap, because nothing is
        counted per record.
        """
        accumulator = self.intake.accumulator
        return {
            **accumulator.statistics.as_dict(),
            "records_unfinished": self.intake.unfinished_count(),
            "batches_unfinished": len(accumulator.unfinished_batches),
            "batches_in_flight": accumulator.in_flight_count,
            "buffer_used_bytes": accumulator.used_bytes,
            "buffer_memory_bytes": self._config.buffer_memory,
        }

    metrics = statistics

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

    def __del__(self) -> None:
        # Do not use `__dict__`, because creating it would keep all objects alive until the next
        # collection.
        intake: Intake | None = getattr(self, "intake", None)  # None: its options were rejected
        if intake is not None and intake.is_running and not self._is_let_go:
            self._let_go(self.intake.unfinished_count())

    def _let_go(self, lost: int) -> None:
        """Warn that the loop ended before `close`, possibly because the producer was dropped."""
        self._is_let_go = True
        say_lost(lost, repr(self))
        if self.intake.is_running:
            unclosed = f"unclosed {self!r}: use it in an async with block"
            warnings.warn(unclosed, ResourceWarning, stacklevel=2, source=self)

    def __repr__(self) -> str:
        servers = ",".join(f"{host}:{port}" for host, port in self._cluster.servers)
        state = "running" if self.intake.is_running else "not running"
        return f"Producer({servers!r}, client_id={self._cluster.config.client_id!r}, {state})"

    # ---- transactions ----

    def transaction(self) -> TransactionScope:
        """Return a transaction as a block: `async with producer.transaction(): ...`.

        At the start of the block, a transaction begins; `init_transactions` is called first if
        necessary. At the end of the block, the transaction is committed. If the block raises an
        error or a record fails, the transaction is aborted and the error is raised. If the commit
        or abort of an earlier block got no response, it is repeated first. Raises the errors of
        `begin_transaction` and `commit_transaction`.
        """
        transactions = self._required_transactions()
        from barnabas.client.producer.transaction_scope import TransactionScope

        return TransactionScope(transactions)

    async def init_transactions(self) -> None:
        """Take over the `transactional.id` (PR-7). Call this once, before the first transaction.

        An older producer with the same id is fenced, and its open transaction is aborted. All
        commits of the older producer are visible when this method returns. Raises
        InvalidTransactionTimeout, TransactionalIdAuthorizationFailed or, after `max.block.ms`, the
        last transient error.
        """
        await self._required_transactions().init()

    def begin_transaction(self) -> None:
        """Begin a transaction that includes all records sent from now on.

        Raises InvalidTxnState.
        """
        self._required_transactions().begin()

    async def send_offsets_to_transaction(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata | int], group: GroupMetadata | str
    ) -> None:
        """Commit the offsets of a consumer group as part of the transaction (KIP-447).

        `group` should be `Consumer.group_metadata()`, so that the commit is rejected if the
        consumer has been removed from the group. This check is skipped if only a group id is
        passed. Raises the errors of `commit_transaction`. Raises UnknownTopicOrPartition after a
        second if a partition does not exist.
        """
        await self._required_transactions().send_offsets(offsets, group)

    async def commit_transaction(self) -> None:
        """Flush, then make the whole transaction visible in one atomic step.

        Raises the error of any record, or of the coordinator. ProducerFenced,
        TransactionalIdAuthorizationFailed and InvalidTxnState are final, so close the producer.
        After Unreachable or a retriable error of the commit itself, call this method again. After
        any other error, call `abort_transaction`, then begin a new transaction.
        """
        await self._required_transactions().commit()

    async def abort_transaction(self) -> None:
        """Undo the transaction, so that read_committed consumers never see its records.

        Records that have not been sent fail with TransactionAborted. Raises the errors of
        `commit_transaction`.
        """
        await self._required_transactions().abort()

    def _required_transactions(self) -> Transactions:
        if self.intake.transactions is None:
            raise ConfigError("this producer has no transactions: give it a transactional.id")
        if not self.intake.is_running:
            raise ClientClosed("the producer is not running: call start() first, not after close")
        return self.intake.transactions

    # ---- sending ----

    async def send(
        self, topic: str, value: Any, key: Any = None, **rest: Unpack[SendOptions]
    ) -> Delivery:
        """Accept a record, and return once it is queued. Await the Delivery for the outcome.

        Args:
            topic: the topic's name.
            value: bytes or None (a tombstone); with a `value.serializer`, whatever it takes.
            key: bytes or None, or what the `key.serializer` takes. A key chooses the partition.
            partition: the partition's number; None: chosen by the partitioner.
            timestamp_ms: milliseconds since the epoch; None: now.
            headers: pairs of a name and bytes, text (sent as UTF-8) or None; or a mapping.
            on_delivery: called with the Delivery on the producer's loop once the outcome is known.

        Raises:
            ValueError, TypeError: an argument is invalid; the message names it.
            SerializationError: a serializer cannot convert the key or value.
            MessageTooLarge: the record is larger than `max.request.size`.
            UnknownPartition: the topic has no partition with that number, even after some seconds
                of metadata refreshes.
            KafkaError: the topic has an error, such as UnknownTopicOrPartition.
            BufferFull: there was no room in `buffer.memory` within `max.block.ms`.
            Unreachable: no broker has described the topic within `max.block.ms`.
            ClientClosed: the producer is not running, or runs on another event loop. With another
                loop, if the record joins an open batch, only awaiting the delivery raises this.

        Example::

            delivery = await producer.send("orders", b"a book", key=b"customer 7")
            print((await delivery).offset)
        """
        on_delivery = rest.pop("on_delivery", None) if rest else None
        delivery = None if rest else self._join(topic, value, key)
        if delivery is None:
            if on_delivery is not None:
                arguments.callback(on_delivery, "on_delivery")
            record = ProducerRecord(topic, value, key, **rest)  # type: ignore[misc]
            delivery = await self.intake.send_record(record)
        if on_delivery is not None:
            delivery.add_done_callback(on_delivery)
        return delivery

    async def send_record(self, record: ProducerRecord) -> Delivery:
        """Accept a `ProducerRecord`. Returns and raises the same as `send`."""
        if type(record) is ProducerRecord:
            topic, value, key, partition, timestamp_ms, headers = record
            if partition is None and timestamp_ms is None and not headers:
                joined = self._join(topic, value, key)
                if joined is not None:
                    return joined
        return await self.intake.send_record(record)

    @overload
    async def send_many(
        self, records: Iterable[ProducerRecord], on_delivery: None = None
    ) -> list[Delivery]: ...

    @overload
    async def send_many(
        self, records: Iterable[ProducerRecord], on_delivery: OnDelivery
    ) -> None: ...

    async def send_many(
        self, records: Iterable[ProducerRecord], on_delivery: OnDelivery | None = None
    ) -> list[Delivery] | None:
        """Accept records in order, each as in `send`, and stop at the first one that is rejected.

        Args:
            records: any iterable of ProducerRecord; consumed as room allows.
            on_delivery: called with a BatchDelivery on the producer's loop for each batch that has
                its outcome, instead of a Delivery per record; this takes less memory and time.

        Returns the Deliveries in order, or None if `on_delivery` is given. Raises the errors of
        `send`; the records before the rejected record are sent.

        Example::

            await producer.send_many(records, on_delivery=lambda batch: print(batch.offsets))
        """
        walk = arguments.iterator(records, "records")
        if on_delivery is None:
            return [await self.send_record(record) for record in walk]
        together = BatchDeliveries(arguments.callback(on_delivery, "on_delivery"))
        for record in walk:
            together.add(await self.send_record(record))
        return None

    async def send_columns(
        self,
        topic: str,
        values: Any,
        keys: Any = None,
        **rest: Unpack[ColumnOptions],
    ) -> list[BatchDelivery]:
        """Send whole columns, one record per row, encoded with numpy instead of row by row.

        Args:
            topic: the topic's name.
            values, keys: bytes, text (sent as UTF-8) or nulls, in Arrow arrays, pandas or polars
                Series, numpy arrays, or lists. Keys choose the partitions, as in `send`.
            partition: one number for all rows, or one per row; None: chosen by the partitioner.
            timestamps_ms: one number for all rows, or one per row; None: now.
            on_delivery: called with each BatchDelivery on the producer's loop.

        Returns a BatchDelivery for each batch once all rows are queued. The batches have
        `batch.size` bytes; a size of 256 KiB or more is much faster than the default. With your own
        serializers, interceptors or partitioner, this method is as slow as `send_many`.

        Raises the errors of `send`. If the rows themselves are invalid, the error is raised before
        any row is sent. Raises ConfigError if numpy is not installed.

        Example::

            table = pyarrow.parquet.read_table("orders.parquet")
            await producer.send_columns("orders", table["json"], table["customer"])
            await producer.flush()
        """
        from barnabas.client.producer.column_sender import ColumnSender

        sender = ColumnSender(self.intake)
        return await sender.send(topic, values, keys, rest)

    async def send_batch(
        self, topic_partition: TopicPartition, batch: bytes | bytearray | memoryview
    ) -> Delivery:
        """Queue a batch from `Consumer.fetch_batches`. Returns the Delivery of its first record.

        Only the offsets, the producer and the sequences of the batch are changed. A batch that is
        too large for the topic fails instead of being split. Raises the errors of `send`, or
        CorruptData if it is not a batch or fails its checksum.
        """
        self.intake.check_open()
        name = arguments.topic_partition(topic_partition)
        encoded = _as_new(arguments.data(batch, "batch") or b"")
        most = self._config.max_request_size
        if len(encoded) > most:
            raise MessageTooLarge(
                f"batch: {len(encoded)} bytes for {name}, more than {most} (max.request.size)"
            )
        await self.intake.topic_with(name.topic, [name.partition])
        async with self.intake.memory.line:
            await self.intake.memory.wait(len(encoded))
            now_ms = self.intake.now_ms()
            made = self.intake.accumulator.append_encoded(name, encoded, now_ms)
            self.intake.watch(made)
        return Delivery(made, 0, read_header(encoded).base_timestamp)

    async def partitions_for(self, topic: str) -> list[int]:
        """Ask a broker for the partition numbers of a topic.

        This also works between transactions. Raises the errors of `send`.
        """
        self.intake.check_running()
        metadata = self._cluster.metadata
        metadata.forget(arguments.topic_name(topic))
        return list((await metadata.topic(topic, self._config.max_block_ms)).partitions)

    async def available_partitions_for(self, topic: str) -> list[int]:
        """Return the partitions that have a leader according to the producer's metadata.

        This also works between transactions. A broker is asked only if the topic is unknown, so the
        method is cheap enough to be called for every batch. A new leader is noticed at the next
        metadata refresh. Raises the errors of `send`.

        Example::

            partition = random.choice(await producer.available_partitions_for("orders"))
        """
        self.intake.check_running()
        view = await self._cluster.metadata.topic(
            arguments.topic_name(topic), self._config.max_block_ms
        )
        return list(view.choice.available)


def _seconds(timeout_ms: float | None) -> float | None:
    return None if timeout_ms is None else arguments.duration(timeout_ms, "timeout_ms") / 1000


def _as_new(batch: bytes) -> bytes:
    """Turn a stored batch into a new one, without its offsets, producer and transaction."""
    # Another cluster's offsets and epoch are meaningless in this one, and its producer's sequences
    # would be rejected; only the codec still describes the bytes.
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
