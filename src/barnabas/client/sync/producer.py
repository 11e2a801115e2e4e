"""Provides the blocking producer for programs without an event loop.

    your thread: producer.send(...) --> outbox --.            .--> result()
    loop thread:                                  `--> Producer -'

Each client has its own event loop in a daemon thread. When two threads compete for the interpreter,
one may have to wait five milliseconds for the other, so records are passed on in bulk (see
`outbox`). Callbacks run in a third thread (see `callback_thread`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Unpack, overload

from barnabas.client import arguments
from barnabas.client.config import ProducerOptions, Servers
from barnabas.client.errors import BufferFull, ClientClosed, RecordsPurged, closed_too_early
from barnabas.client.producer.batch import (
    CheckedRecord,
    ColumnOptions,
    ProducerRecord,
    SendOptions,
)
from barnabas.client.producer.batch_delivery import BatchDeliveries, BatchDelivery, OnDelivery
from barnabas.client.producer.delivery import Delivery, call_back
from barnabas.client.producer.producer import Producer
from barnabas.client.sync.admin import SyncAdmin
from barnabas.client.sync.blocking import BlockingClient, documented_by
from barnabas.client.sync.callback_thread import CallbackThread
from barnabas.client.sync.consumer import SyncConsumer
from barnabas.client.sync.delivery import SyncDelivery
from barnabas.client.sync.farewell import MOST_S
from barnabas.client.sync.outbox import Outbox
from barnabas.errors import BarnabasError
from barnabas.types import TopicPartition

if TYPE_CHECKING:
    from barnabas.client.consumer.committed import GroupMetadata, OffsetAndMetadata
    from barnabas.client.producer.transaction_scope import TransactionScope

__all__ = ["SyncAdmin", "SyncConsumer", "SyncDelivery", "SyncProducer"]

_log = logging.getLogger(__name__)

_CHUNK_BYTES = 1_048_576  # bytes per handover by `send_many`


@documented_by(Producer)
class SyncProducer(BlockingClient[Producer]):
    """A `Producer` that several threads may share. `send` does not wait for the broker.

    The options are passed in the same ways as to `Producer`. The constructor connects, and raises
    NoBrokersAvailable if it cannot.

    Close the producer after use. If it is dropped, or still open when the program ends, it is
    flushed for ten seconds at most, and a line on stderr reports how many records were not
    acknowledged.

    Example::

        with SyncProducer("localhost:9092", linger_ms=5) as producer:
            delivery = producer.send("orders", b"a book", key=b"customer 7")
            print(delivery.result().offset)
    """

    def __init__(
        self, bootstrap_servers: Servers = None, **options: Unpack[ProducerOptions]
    ) -> None:
        producer = Producer(bootstrap_servers, **options)
        super().__init__(producer)
        self._intake = producer.intake
        self._max_block_s = self._intake.max_block_ms / 1000
        self._outbox = Outbox(self._intake, self._thread)
        self._callbacks = CallbackThread("barnabas-producer-callbacks", self._thread.keep)
        self._farewell.finish = partial(_finish, producer, self._outbox, self._callbacks)

    def send(
        self, topic: str, value: Any, key: Any = None, **rest: Unpack[SendOptions]
    ) -> SyncDelivery:
        """Hand over a record. Blocks only while a megabyte of records is waiting for the loop.

        Args:
            topic: the topic's name.
            value: bytes or None (a tombstone); with a `value.serializer`, whatever it takes.
            key: bytes or None, or what the `key.serializer` takes. A key chooses the partition.
            partition: the partition's number; None: chosen by the partitioner.
            timestamp_ms: milliseconds since the epoch; None: now.
            headers: pairs of a name and bytes, text (sent as UTF-8) or None; or a mapping.
            on_delivery: called with the SyncDelivery once the outcome is known, in the callback
                thread; see `SyncDelivery.add_done_callback`.

        Raises:
            ValueError, TypeError: an argument is invalid; the message names it.
            SerializationError: a serializer cannot convert the key or value.
            MessageTooLarge: the record is larger than `max.request.size`.
            BufferFull: there was no room within `max.block.ms`.
            ClientClosed: the producer is closed.

        All other errors are reported as the outcome of the SyncDelivery.

        Example::

            with SyncProducer("localhost:9092") as producer:
                print(producer.send("orders", b"a book", key=b"customer 7").result().offset)
        """
        self._thread.check_process()
        on_delivery = rest.pop("on_delivery", None) if rest else None
        if on_delivery is not None:
            arguments.callback(on_delivery, "on_delivery")
            self._wait_for_callbacks()
        record = None if rest else self._intake.check_plain(topic, value, key)
        if record is None:
            record = self._check_record(ProducerRecord(topic, value, key, **rest))  # type: ignore[misc]
        delivery = SyncDelivery(self, record, on_delivery)
        self._outbox.put(delivery)
        return delivery

    def send_record(self, record: ProducerRecord) -> SyncDelivery:
        """Hand over a `ProducerRecord`. Returns and raises the same as `send`."""
        self._thread.check_process()
        delivery = SyncDelivery(self, self._check_record(record))
        self._outbox.put(delivery)
        return delivery

    @overload
    def send_many(
        self, records: Iterable[ProducerRecord], on_delivery: None = None
    ) -> list[Delivery]: ...

    @overload
    def send_many(self, records: Iterable[ProducerRecord], on_delivery: OnDelivery) -> None: ...

    def send_many(
        self, records: Iterable[ProducerRecord], on_delivery: OnDelivery | None = None
    ) -> list[Delivery] | None:
        """Hand over many records in order, and return when all of them are queued.

        Args:
            records: any iterable of ProducerRecord; consumed as room allows.
            on_delivery: called with a BatchDelivery in the callback thread, for each batch that has
                its outcome, instead of a Delivery per record, which takes less memory and time.

        Returns the Deliveries, or None with `on_delivery`. Before `flush`, only `done()` can be
        called on a Delivery; after `flush`, its result is available. A rejected record raises an
        error, as in `send`, and the records before it are sent.
        """
        self._thread.check()
        deliveries: list[Delivery] = []
        together = None
        if on_delivery is not None:
            together = BatchDeliveries(self._on_thread(on_delivery))
        for chunk in self._chunks(arguments.iterator(records, "records")):
            sent = self._thread.run(self._send_all(chunk, together))
            if together is None:
                deliveries += sent
        return None if together is not None else deliveries

    def _chunks(self, records: Iterator[ProducerRecord]) -> Iterator[list[CheckedRecord]]:
        """Yield the checked records, a megabyte at a time, including those before an error."""
        checked: list[CheckedRecord] = []
        size_bytes = 0
        for record in records:
            try:
                checked.append(self._check_record(record))
            except BaseException:  # the user's serializer may raise SystemExit
                yield checked
                raise
            size_bytes += checked[-1].size_bytes
            if size_bytes > _CHUNK_BYTES:
                yield checked
                checked, size_bytes = [], 0
        yield checked

    def send_columns(
        self, topic: str, values: Any, keys: Any = None, **rest: Unpack[ColumnOptions]
    ) -> list[BatchDelivery]:
        """Send whole columns, like `Producer.send_columns`, and return when all are queued.

        `on_delivery` is called in the callback thread.
        """
        if rest.get("on_delivery") is not None:
            rest["on_delivery"] = self._on_thread(rest["on_delivery"])
        return self._thread.run(self._send_columns(topic, values, keys, rest))

    def _on_thread(self, on_delivery: Any) -> Callable[[Any], None]:
        """Wrap a callback, so that the loop passes it to the callback thread."""
        arguments.callback(on_delivery, "on_delivery")
        callbacks = self._callbacks
        callbacks.start()
        return lambda delivery: callbacks.put(partial(call_back, on_delivery, delivery))

    def send_batch(
        self, topic_partition: TopicPartition, batch: bytes | bytearray | memoryview
    ) -> Delivery:
        """Queue a whole record batch, like `Producer.send_batch`, and return when it is queued."""
        self._thread.check()
        return self._thread.run(self._send_batch(topic_partition, batch))

    def partitions_for(self, topic: str) -> list[int]:
        """Return a topic's partition numbers from the brokers. Raises the errors of `send`."""
        return self._thread.run(self._client.partitions_for(topic))

    def available_partitions_for(self, topic: str) -> list[int]:
        return self._thread.run(self._client.available_partitions_for(topic))

    def flush(self, timeout_ms: float | None = None) -> None:
        """Wait until all records sent so far have an outcome and their callbacks have been called.

        The arguments and the errors are the same as for `Producer.flush`. The time limit does not
        include the callbacks. If a callback calls this method, it does not wait for callbacks.
        """
        self._thread.run(self._flush(timeout_ms))
        self._callbacks.flush()
        self._thread.raise_kept()

    def purge(self) -> int:
        """Fail every record that is not in flight with RecordsPurged. Returns their number.

        See `Producer.purge`.
        """
        return self._thread.run(self._purge())

    def statistics(self) -> dict[str, float]:
        return self._thread.call(self._client.statistics)

    metrics = statistics

    def transaction(self) -> AbstractContextManager[None]:
        """Return a transaction as a block: `with producer.transaction(): ...`.

        See `Producer.transaction`.
        """
        return self._transaction()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        scope = self._thread.call(self._client.transaction)
        self._thread.run(scope.__aenter__())
        try:
            yield
        except BaseException as error:
            self._thread.run(self._end(scope, error))
            raise
        self._thread.run(self._end(scope, None))

    def __dir__(self) -> list[str]:
        # The methods for users, without those that deliveries call.
        return [name for name in vars(Producer) if name != "start" and not name.startswith("_")]

    def __repr__(self) -> str:
        return f"Sync{self._client!r}"

    def init_transactions(self) -> None:
        self._thread.run(self._client.init_transactions())

    def begin_transaction(self) -> None:
        self._thread.call(self._client.begin_transaction)

    def send_offsets_to_transaction(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata | int], group: GroupMetadata | str
    ) -> None:
        self._thread.run(self._client.send_offsets_to_transaction(offsets, group))

    def commit_transaction(self) -> None:
        self._thread.run(self._commit())

    def abort_transaction(self) -> None:
        self._thread.run(self._abort())

    def close(self, timeout_ms: float | None = None) -> None:
        """Flush, then disconnect. Any open transaction is aborted. Further calls do nothing.

        The arguments and the errors are the same as for `Producer.close`. In a forked process,
        there is nothing to close.
        """
        if not self._thread.is_own:
            return
        if timeout_ms is not None:
            arguments.duration(timeout_ms, "timeout_ms")
        # Stop accepting records, settle the queued ones, then end the thread.
        self._outbox.refuse()
        try:
            self._thread.run(_close(self._client, self._outbox, timeout_ms))
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
        self._thread.raise_kept()

    def wait_for(self, delivery: SyncDelivery, timeout_s: float | None) -> None:
        """Block until the delivery is done. Raises TimeoutError."""
        self._thread.run(delivery.until_done(), timeout_s)

    def call_when_done(
        self, delivery: SyncDelivery, callback: Callable[[SyncDelivery], Any]
    ) -> None:
        """Call `callback` in the callback thread when the outcome is known. Raises BufferFull."""
        self._wait_for_callbacks()
        due = partial(self._callbacks.put, partial(delivery.call_back, callback))
        try:
            self._thread.call_soon(partial(delivery.when_done, due))
        except RuntimeError:  # the loop is closed, so the outcome is known
            due()

    def _wait_for_callbacks(self) -> None:
        if not self._callbacks.wait_for_room(self._max_block_s):
            raise BufferFull(
                f"too many callbacks are pending for {self._max_block_s} s (max.block.ms): "
                "earlier callbacks take too long"
            )

    def call_at_end(self, delivery: SyncDelivery, callback: Callable[[SyncDelivery], Any]) -> None:
        """Arrange for `callback` to be called once a record's outcome is known.

        This is called on the loop.
        """
        due = partial(self._callbacks.put, partial(delivery.call_back, callback))
        delivery.when_done(due)

    def _check_record(self, record: ProducerRecord) -> CheckedRecord:
        try:
            return self._intake.check(record)
        except BarnabasError as error:
            refused = error
            if self._thread.is_alive:
                self._thread.call_soon(lambda: self._intake.on_refused(refused, record))
            raise

    # ---- on the loop ----

    async def _send_all(
        self, records: Sequence[CheckedRecord], together: BatchDeliveries | None
    ) -> list[Delivery]:
        await self._outbox.wait_until_drained()
        if together is None:
            return [await self._intake.send(record) for record in records]
        for record in records:
            together.add(await self._intake.send(record))
        return []

    async def _send_columns(
        self, topic: str, values: Any, keys: Any, rest: ColumnOptions
    ) -> list[BatchDelivery]:
        await self._outbox.wait_until_drained()
        return await self._client.send_columns(topic, values, keys, **rest)

    async def _flush(self, timeout_ms: float | None = None) -> None:
        ends_at = _ends_at(timeout_ms)
        try:
            async with asyncio.timeout_at(ends_at):
                await self._outbox.wait_until_drained()
        except TimeoutError:
            raise TimeoutError(
                "records are still waiting for brokers after timeout_ms, and stay queued"
            ) from None
        await self._client.flush(_left_ms(ends_at))

    async def _purge(self) -> int:
        purged = self._outbox.purge(RecordsPurged("the record was not sent: purge() was called"))
        return purged + self._client.purge()

    async def _end(self, scope: TransactionScope, error: BaseException | None) -> None:
        await self._outbox.wait_until_drained()
        await scope.__aexit__(None if error is None else type(error), error, None)

    async def _send_batch(
        self, topic_partition: TopicPartition, batch: bytes | bytearray | memoryview
    ) -> Delivery:
        await self._outbox.wait_until_drained()  # records that were sent earlier come first
        return await self._client.send_batch(topic_partition, batch)

    async def _commit(self) -> None:
        await self._outbox.wait_until_drained()
        await self._client.commit_transaction()

    async def _abort(self) -> None:
        await self._outbox.wait_until_drained()
        await self._client.abort_transaction()


async def _close(producer: Producer, outbox: Outbox, timeout_ms: float | None) -> None:
    ends_at = _ends_at(timeout_ms)
    try:
        async with asyncio.timeout_at(ends_at):
            await outbox.wait_until_drained()
    except TimeoutError:
        outbox.fail(closed_too_early())
    await producer.close(_left_ms(ends_at))


async def _finish(producer: Producer, outbox: Outbox, callbacks: CallbackThread) -> int:
    """Close a dropped producer, and return the number of records that were not acknowledged."""
    # No acknowledged record counts as lost, even one acknowledged from this point on.
    outbox.refuse()
    owed = outbox.count() + producer.intake.unfinished_count()
    before = producer.intake.acknowledged_count()
    try:
        await _close(producer, outbox, MOST_S * 1000)
        async with asyncio.timeout(MOST_S):
            await callbacks.all_called()
    except TimeoutError:
        _log.warning("callbacks of %r took too long and were abandoned", producer)
    finally:
        callbacks.end()
    return max(0, owed - (producer.intake.acknowledged_count() - before))


def _ends_at(timeout_ms: float | None) -> float | None:
    """Return the loop's time at which the timeout ends. None means that it never ends."""
    if timeout_ms is None:
        return None
    limit_s = arguments.duration(timeout_ms, "timeout_ms") / 1000
    return asyncio.get_running_loop().time() + limit_s


def _left_ms(ends_at: float | None) -> float | None:
    return None if ends_at is None else max(0.0, ends_at - asyncio.get_running_loop().time()) * 1000
