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
from functools import partial
from types import TracebackType
from typing import Any, Generic, Self, TypeVar, Unpack, overload

from barnabas.client.admin import (
    Admin,
    ClusterDescription,
    ConfigEntry,
    ConfigOperation,
    ConfigResource,
    LogDirDescription,
    NewTopic,
    TopicDescription,
)
from barnabas.client.batch import ProducerRecord, RecordOptions
from barnabas.client.config import ClientOptions, ConsumerOptions, ProducerOptions
from barnabas.client.consumer import Consumer
from barnabas.client.delivery import Delivery, RecordMetadata, until_done
from barnabas.client.errors import ClientClosed
from barnabas.client.fetched import ConsumerRecord, FetchedBytes
from barnabas.client.loop_thread import LoopThread
from barnabas.client.offsets import OffsetAndTimestamp
from barnabas.client.producer import Producer
from barnabas.errors import BarnabasError
from barnabas.types import TopicPartition

_OUTBOX_BYTES = 1_048_576  # what may wait between the threads before send blocks


C = TypeVar("C", Producer, Consumer, Admin)


class _Client(Generic[C]):
    """Start, close and context manager, alike for all three."""

    def __init__(self, client: C) -> None:
        self._client: C = client
        self._thread = LoopThread(f"barnabas-{type(client).__name__.lower()}")
        try:
            self._thread.run(client.start())
        except BaseException:
            self._thread.stop()
            raise

    def close(self) -> None:
        """Finish and disconnect; more calls do nothing."""
        try:
            self._thread.run(self._client.close())
        except ClientClosed:
            return
        finally:
            self._thread.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


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


class SyncProducer(_Client[Producer]):
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

    def close(self) -> None:
        """Flush, then disconnect."""
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

    async def _done(self, delivery: SyncDelivery) -> None:
        if delivery.delivery is None and delivery.error is None:
            if delivery.queued is None:
                delivery.queued = self._thread.loop.create_future()
            await asyncio.shield(delivery.queued)
        if delivery.delivery is not None and not delivery.delivery.done():
            await until_done(delivery.delivery.batch)


class SyncConsumer(_Client[Consumer]):
    """A `Consumer` for one thread; the methods are its, blocking."""

    def __init__(
        self, bootstrap_servers: str | Sequence[str], **options: Unpack[ConsumerOptions]
    ) -> None:
        super().__init__(Consumer(bootstrap_servers, **options))

    def assign(self, topic_partitions: Iterable[TopicPartition]) -> None:
        names = list(topic_partitions)
        self._thread.call(lambda: self._client.assign(names))

    def assignment(self) -> list[TopicPartition]:
        return self._thread.call(self._client.assignment)

    def seek(self, topic_partition: TopicPartition, offset: int) -> None:
        self._thread.call(lambda: self._client.seek(topic_partition, offset))

    def seek_to_beginning(self, *topic_partitions: TopicPartition) -> None:
        self._thread.run(self._client.seek_to_beginning(*topic_partitions))

    def seek_to_end(self, *topic_partitions: TopicPartition) -> None:
        self._thread.run(self._client.seek_to_end(*topic_partitions))

    def position(self, topic_partition: TopicPartition) -> int:
        return self._thread.run(self._client.position(topic_partition))

    def pause(self, *topic_partitions: TopicPartition) -> None:
        self._thread.call(lambda: self._client.pause(*topic_partitions))

    def resume(self, *topic_partitions: TopicPartition) -> None:
        self._thread.call(lambda: self._client.resume(*topic_partitions))

    def poll(self, timeout_ms: int) -> list[ConsumerRecord]:
        return self._thread.run(self._client.poll(timeout_ms))

    def fetch_batches(self, timeout_ms: int) -> dict[TopicPartition, FetchedBytes]:
        return self._thread.run(self._client.fetch_batches(timeout_ms))

    def beginning_offsets(
        self, topic_partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, int]:
        return self._thread.run(self._client.beginning_offsets(topic_partitions))

    def end_offsets(self, topic_partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return self._thread.run(self._client.end_offsets(topic_partitions))

    def offsets_for_times(
        self, timestamps: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        return self._thread.run(self._client.offsets_for_times(timestamps))

    def partitions_for(self, topic: str) -> list[int]:
        return self._thread.run(self._client.partitions_for(topic))

    def list_topics(self) -> dict[str, list[int]]:
        return self._thread.run(self._client.list_topics())


class SyncAdmin(_Client[Admin]):
    """An `Admin`, blocking."""

    def __init__(
        self, bootstrap_servers: str | Sequence[str], **options: Unpack[ClientOptions]
    ) -> None:
        super().__init__(Admin(bootstrap_servers, **options))

    def create_topics(self, topics: Sequence[NewTopic], *, validate_only: bool = False) -> None:
        self._thread.run(self._client.create_topics(topics, validate_only=validate_only))

    def delete_topics(self, names: Sequence[str]) -> None:
        self._thread.run(self._client.delete_topics(names))

    def list_topics(self, *, include_internal: bool = True) -> list[str]:
        return self._thread.run(self._client.list_topics(include_internal=include_internal))

    def describe_topics(self, names: Sequence[str] | None = None) -> list[TopicDescription]:
        return self._thread.run(self._client.describe_topics(names))

    def create_partitions(
        self,
        topic: str,
        total_count: int,
        assignments: Sequence[Sequence[int]] | None = None,
        *,
        validate_only: bool = False,
    ) -> None:
        self._thread.run(
            self._client.create_partitions(
                topic, total_count, assignments, validate_only=validate_only
            )
        )

    @overload
    def describe_configs(
        self,
        resource: ConfigResource,
        names: Sequence[str] | None = None,
        *,
        include_synonyms: bool = False,
        include_documentation: bool = False,
    ) -> list[ConfigEntry]: ...

    @overload
    def describe_configs(
        self,
        resource: list[ConfigResource],
        names: Sequence[str] | None = None,
        *,
        include_synonyms: bool = False,
        include_documentation: bool = False,
    ) -> dict[ConfigResource, list[ConfigEntry]]: ...

    def describe_configs(
        self,
        resource: ConfigResource | list[ConfigResource],
        names: Sequence[str] | None = None,
        *,
        include_synonyms: bool = False,
        include_documentation: bool = False,
    ) -> list[ConfigEntry] | dict[ConfigResource, list[ConfigEntry]]:
        describe = partial(
            self._client.describe_configs,
            names=names,
            include_synonyms=include_synonyms,
            include_documentation=include_documentation,
        )
        if isinstance(resource, list):
            return self._thread.run(describe(resource))
        return self._thread.run(describe(resource))

    def alter_configs(
        self,
        resource: ConfigResource,
        operations: Sequence[ConfigOperation],
        *,
        validate_only: bool = False,
    ) -> None:
        self._thread.run(
            self._client.alter_configs(resource, operations, validate_only=validate_only)
        )

    def describe_log_dirs(self) -> dict[int, tuple[LogDirDescription, ...]]:
        return self._thread.run(self._client.describe_log_dirs())

    def describe_cluster(self) -> ClusterDescription:
        return self._thread.run(self._client.describe_cluster())
