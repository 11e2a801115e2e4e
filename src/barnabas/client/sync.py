"""The same clients for programs without an event loop: every call blocks until it is done.

    your thread: producer.send(...) --> outbox --.            .--> result()
    loop thread:                                  `--> Producer -'

Each client has a loop of its own in a daemon thread. Nothing computes in parallel with it for long
(two threads that both want the interpreter wait five milliseconds for each other), so records go
over in bulk: the first one of an empty outbox wakes the loop, all that follow just join.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Unpack

from barnabas.client.batch import ProducerRecord, RecordOptions
from barnabas.client.blocking import BlockingClient
from barnabas.client.config import ProducerOptions
from barnabas.client.delivery import Delivery, RecordMetadata, until_done
from barnabas.client.errors import ClientClosed
from barnabas.client.producer import Producer
from barnabas.client.sync_admin import SyncAdmin
from barnabas.client.sync_consumer import SyncConsumer
from barnabas.errors import BarnabasError
from barnabas.types import TopicPartition

if TYPE_CHECKING:
    from barnabas.client.committed import GroupMetadata, OffsetAndMetadata

__all__ = ["SyncAdmin", "SyncConsumer", "SyncDelivery", "SyncProducer"]

_OUTBOX_BYTES = 1_048_576  # what may wait between the threads before send blocks


class SyncDelivery:
    """One record's way to its partition, to be asked from the thread that sent it."""

    __slots__ = ("_producer", "delivery", "error", "queued", "record")

    def __init__(self, producer: SyncProducer, record: ProducerRecord) -> None:
        self._producer = producer
        self.record = record
        self.delivery: Delivery | None = None  # set on the loop, once the record is queued
        self.error: BaseException | None = None  # ... or could not be
        self.queued: asyncio.Future[None] | None = None  # made by who waits for either

    def done(self) -> bool:
        return self.error is not None or (self.delivery is not None and self.delivery.done())

    def result(self, timeout_s: float | None = None) -> RecordMetadata:
        """Wait for the acknowledgement; raises what went wrong, TimeoutError after `timeout_s`."""
        error = self.exception(timeout_s)
        if error is not None:
            raise error
        assert self.delivery is not None
        return self.delivery.result()

    def exception(self, timeout_s: float | None = None) -> BaseException | None:
        """Wait for the outcome; None if the record is acknowledged."""
        if not self.done():
            self._producer.wait_for(self, timeout_s)
        if self.delivery is None:
            return self.error
        return self.delivery.exception()

    def add_done_callback(self, callback: Callable[[SyncDelivery], Any]) -> None:
        """Call `callback(self)` once the outcome is known, on the producer's thread (PR-8)."""
        self._producer.call_when_done(self, callback)

    def settle(self, delivery: Delivery | None, error: BaseException | None) -> None:
        """The record is queued, or refused. On the loop."""
        self.delivery = delivery
        self.error = error
        if self.queued is not None and not self.queued.done():
            self.queued.set_result(None)


class SyncProducer(BlockingClient[Producer]):
    """A `Producer` for threads; several may share it. `send` does not wait for the broker."""

    def __init__(
        self, bootstrap_servers: str | Sequence[str], **options: Unpack[ProducerOptions]
    ) -> None:
        super().__init__(Producer(bootstrap_servers, **options))
        self._outbox: list[SyncDelivery] = []
        self._outbox_bytes = 0
        self._outbox_changed = threading.Condition()
        self._draining = False
        self._drain: asyncio.Task[None] | None = None  # used on the loop only

    def send(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None = None,
        **rest: Unpack[RecordOptions],
    ) -> SyncDelivery:
        """Hand over a record; blocks only while a megabyte of others is on its way to the loop.

        Raises ValueError, TypeError, MessageTooLarge for a record that cannot be. What else goes
        wrong is the outcome of the SyncDelivery.
        """
        record = ProducerRecord(topic, value, key, **rest)
        size_bytes = self._client.checked_size(record)
        delivery = SyncDelivery(self, record)
        with self._outbox_changed:
            while self._outbox_bytes > _OUTBOX_BYTES:
                self._outbox_changed.wait()
            self._outbox.append(delivery)
            self._outbox_bytes += size_bytes
            is_first, self._draining = not self._draining, True
        if is_first:
            self._thread.call_soon(self._start_drain)
        return delivery

    def send_many(self, records: Iterable[ProducerRecord]) -> list[Delivery]:
        """Hand over many records at once, in order; returns when all are queued.

        The cheapest way to send in bulk. Ask the deliveries after `flush`; before, they say only
        whether they are done. A record that is refused raises, those in front of it are sent.
        """
        return self._thread.run(self._send_many(records))

    def flush(self) -> None:
        """Return once everything sent so far has its outcome."""
        self._thread.run(self._flush())

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
        """As `Producer.commit_transaction`, which says what to do about each kind of error."""
        self._thread.run(self._commit())

    def abort_transaction(self) -> None:
        self._thread.run(self._abort())

    def close(self) -> None:
        """Flush, then disconnect; an open transaction is aborted."""
        try:
            self._thread.run(self._flush())
        except ClientClosed:
            return
        finally:
            super().close()

    def wait_for(self, delivery: SyncDelivery, timeout_s: float | None) -> None:
        """Block until the delivery is done; TimeoutError."""
        self._thread.run(self._done(delivery), timeout_s)

    def call_when_done(
        self, delivery: SyncDelivery, callback: Callable[[SyncDelivery], Any]
    ) -> None:
        async def call() -> None:
            await self._done(delivery)
            callback(delivery)

        self._thread.spawn(call())

    # ---- on the loop ----

    def _start_drain(self) -> None:
        self._drain = self._thread.loop.create_task(self._drain_outbox())

    async def _drain_outbox(self) -> None:
        """Queue what is in the outbox until it is empty; in order, and only as fast as it goes."""
        while True:
            with self._outbox_changed:
                deliveries, self._outbox = self._outbox, []
                self._outbox_bytes = 0
                self._draining = bool(deliveries)
                self._outbox_changed.notify_all()
            if not deliveries:
                return
            for delivery in deliveries:
                try:
                    delivery.settle(await self._client.send_record(delivery.record), None)
                except (BarnabasError, ValueError) as error:
                    delivery.settle(None, error)

    async def _drained(self) -> None:
        """Everything sent before this call has left the outbox."""
        if self._drain is not None and not self._drain.done():
            await asyncio.shield(self._drain)

    async def _send_many(self, records: Iterable[ProducerRecord]) -> list[Delivery]:
        await self._drained()
        return await self._client.send_many(records)

    async def _flush(self) -> None:
        await self._drained()
        await self._client.flush()

    async def _commit(self) -> None:
        await self._drained()
        await self._client.commit_transaction()

    async def _abort(self) -> None:
        await self._drained()
        await self._client.abort_transaction()

    async def _done(self, delivery: SyncDelivery) -> None:
        if delivery.delivery is None and delivery.error is None:
            if delivery.queued is None:
                delivery.queued = self._thread.loop.create_future()
            await asyncio.shield(delivery.queued)
        if delivery.delivery is not None and not delivery.delivery.done():
            await until_done(delivery.delivery.batch)
