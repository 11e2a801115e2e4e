"""The same clients for programs without an event loop: every call blocks until it is done.

    your thread: producer.send(...) --> outbox --.            .--> result()
    loop thread:                                  `--> Producer -'

Each client has a loop of its own in a daemon thread. Nothing computes in parallel with it for long
(two threads that both want the interpreter wait five milliseconds for each other), so records go
over in bulk (see `outbox`). Callbacks have a thread of their own (see `callback_thread`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Unpack

from barnabas.client import arguments
from barnabas.client.config import ProducerOptions, Servers
from barnabas.client.errors import BufferFull, ClientClosed
from barnabas.client.producer.batch import CheckedRecord, ProducerRecord, RecordOptions
from barnabas.client.producer.delivery import Delivery
from barnabas.client.producer.producer import Producer
from barnabas.client.sync.admin import SyncAdmin
from barnabas.client.sync.blocking import BlockingClient
from barnabas.client.sync.callback_thread import CallbackThread
from barnabas.client.sync.consumer import SyncConsumer
from barnabas.client.sync.delivery import SyncDelivery
from barnabas.client.sync.outbox import Outbox
from barnabas.errors import BarnabasError
from barnabas.types import TopicPartition

if TYPE_CHECKING:
    from barnabas.client.consumer.committed import GroupMetadata, OffsetAndMetadata

__all__ = ["SyncAdmin", "SyncConsumer", "SyncDelivery", "SyncProducer"]

_CHUNK_BYTES = 1_048_576  # that `send_many` hands over at once


class SyncProducer(BlockingClient[Producer]):
    """A `Producer` for threads; several may share it. `send` does not wait for the broker."""

    def __init__(
        self, bootstrap_servers: Servers = None, **options: Unpack[ProducerOptions]
    ) -> None:
        producer = Producer(bootstrap_servers, **options)
        super().__init__(producer)
        self._max_block_s = producer.max_block_ms / 1000
        self._outbox = Outbox(producer, self._thread)
        self._callbacks = CallbackThread("barnabas-producer-callbacks")

    def send(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None = None,
        **rest: Unpack[RecordOptions],
    ) -> SyncDelivery:
        """Hand over a record; blocks only while a megabyte of others is on its way to the loop.

        Raises ValueError, TypeError, MessageTooLarge for an invalid record, and BufferFull after
        `max.block.ms`. Any other error is the outcome of the SyncDelivery.
        """
        self._thread.check_process()
        record = self._checked(ProducerRecord(topic, value, key, **rest))
        delivery = SyncDelivery(self, record)
        self._outbox.put(delivery)
        return delivery

    def send_many(self, records: Iterable[ProducerRecord]) -> list[Delivery]:
        """Hand over many records at once, in order; returns when all are queued.

        The cheapest way to send in bulk. Read the results after `flush`; before, a delivery only
        has `done()`. A record that is refused raises; those before it are sent.
        """
        self._thread.check()
        deliveries: list[Delivery] = []
        checked: list[CheckedRecord] = []
        size_bytes = 0
        try:
            for record in arguments.walked(records, "records"):
                checked.append(self._checked(record))
                size_bytes += checked[-1].size_bytes
                if size_bytes > _CHUNK_BYTES:
                    full, checked, size_bytes = checked, [], 0
                    deliveries += self._thread.run(self._send_all(full))
        finally:
            if checked:
                deliveries += self._thread.run(self._send_all(checked))
        return deliveries

    def send_batch(
        self, topic_partition: TopicPartition, batch: bytes | bytearray | memoryview
    ) -> Delivery:
        """As `Producer.send_batch`; returns when the batch is queued."""
        self._thread.check()
        return self._thread.run(self._send_batch(topic_partition, batch))

    def partitions_for(self, topic: str) -> list[int]:
        """The numbers of a topic's partitions, as a broker has them now. Raises as `send`."""
        return self._thread.run(self._client.partitions_for(topic))

    def flush(self) -> None:
        """Return once everything sent so far has its outcome, and callbacks have been called.

        Raises as `Producer.flush`. In a callback it does not wait for callbacks.
        """
        self._thread.run(self._flush())
        self._callbacks.flush()

    def init_transactions(self) -> None:
        """As `Producer.init_transactions`: once, before the first transaction."""
        self._thread.run(self._client.init_transactions())

    def begin_transaction(self) -> None:
        self._thread.call(self._client.begin_transaction)

    def send_offsets_to_transaction(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata | int], group: GroupMetadata | str
    ) -> None:
        self._thread.run(self._client.send_offsets_to_transaction(offsets, group))

    def commit_transaction(self) -> None:
        """As `Producer.commit_transaction`, which lists what to do about each error."""
        self._thread.run(self._commit())

    def abort_transaction(self) -> None:
        self._thread.run(self._abort())

    def close(self) -> None:
        """Flush, then disconnect; an open transaction is aborted. Raises as `flush`.

        In a forked process there is nothing to close.
        """
        if not self._thread.is_own:
            return
        self._outbox.refuse()
        try:
            self._thread.run(self._flush())
        except ClientClosed:
            return
        finally:
            try:
                if self._thread.is_alive:
                    closed = ClientClosed("the producer was closed before that")
                    self._thread.call_soon(lambda: self._outbox.fail(closed))
                super().close()
            finally:
                self._callbacks.close()

    def wait_for(self, delivery: SyncDelivery, timeout_s: float | None) -> None:
        """Block until the delivery is done; TimeoutError."""
        self._thread.run(delivery.until_done(), timeout_s)

    def call_when_done(
        self, delivery: SyncDelivery, callback: Callable[[SyncDelivery], Any]
    ) -> None:
        if not self._callbacks.wait_for_room(self._max_block_s):
            raise BufferFull(
                f"too many callbacks are due, for {self._max_block_s} s (max.block.ms): "
                "earlier ones take too long"
            )
        call = partial(delivery.call_back, callback)
        due = partial(self._callbacks.put, call)
        try:
            self._thread.call_soon(partial(delivery.when_done, due))
        except RuntimeError:  # the loop is closed: the outcome is known
            due()

    def _checked(self, record: ProducerRecord) -> CheckedRecord:
        try:
            return self._client.checked(record)
        except BarnabasError as error:
            refused = error
            if self._thread.is_alive:
                self._thread.call_soon(lambda: self._client.refused(refused))
            raise

    # ---- on the loop ----

    async def _send_all(self, records: Sequence[CheckedRecord]) -> list[Delivery]:
        await self._outbox.drained()
        return [await self._client.send_checked(record) for record in records]

    async def _flush(self) -> None:
        await self._outbox.drained()
        await self._client.flush()

    async def _send_batch(
        self, topic_partition: TopicPartition, batch: bytes | bytearray | memoryview
    ) -> Delivery:
        await self._outbox.drained()  # records that were sent before come first
        return await self._client.send_batch(topic_partition, batch)

    async def _commit(self) -> None:
        await self._outbox.drained()
        await self._client.commit_transaction()

    async def _abort(self) -> None:
        await self._outbox.drained()
        await self._client.abort_transaction()
