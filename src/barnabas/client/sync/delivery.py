"""Provides the handle for a record that was sent, for threads without an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from barnabas.client import arguments
from barnabas.client.producer.batch import CheckedRecord
from barnabas.client.producer.delivery import Delivery, RecordMetadata, call_back

if TYPE_CHECKING:
    from barnabas.client.sync.producer import SyncProducer


class SyncDelivery:
    """The outcome of one record. It can be used in any thread."""

    __slots__ = ("_producer", "_when_queued", "delivery", "error", "on_delivery", "record")

    def __init__(
        self,
        producer: SyncProducer,
        record: CheckedRecord,
        on_delivery: Callable[[SyncDelivery], Any] | None = None,
    ) -> None:
        self._producer = producer
        self.on_delivery = on_delivery
        self.record = record
        self.delivery: Delivery | None = None  # set on the loop once the record is queued
        self.error: BaseException | None = None  # set if the record could not be queued
        self._when_queued: list[Callable[[], None]] | None = None  # callbacks for the loop to call

    def done(self) -> bool:
        return self.error is not None or (self.delivery is not None and self.delivery.done())

    def result(self, timeout_s: float | None = None) -> RecordMetadata:
        """Wait for the acknowledgement. Raises the record's error, or TimeoutError."""
        error = self.exception(timeout_s)
        if error is not None:
            raise error.with_traceback(None)
        assert self.delivery is not None
        return self.delivery.result()

    def exception(self, timeout_s: float | None = None) -> BaseException | None:
        """Wait for the outcome, and return the error, or None if the record was acknowledged."""
        if timeout_s is not None:
            arguments.duration(timeout_s, "timeout_s")
        if not self.done():
            self._producer.wait_for(self, timeout_s)
        if self.delivery is None:
            return self.error
        return self.delivery.exception()

    def add_done_callback(self, callback: Callable[[SyncDelivery], Any]) -> None:
        """Call `callback(self)` in the callback thread once the outcome is known (PR-8).

        In that thread, the callback may send, wait for results and flush. Exceptions from the
        callback are only logged, but SystemExit and similar exceptions are raised by the next
        `flush`, `close` or other call that waits. The callbacks for a partition's records are
        called in the order of the records; `flush` and `close` wait for them. Raises BufferFull if
        ten thousand callbacks are still due after `max.block.ms`.
        """
        self._producer.call_when_done(self, arguments.callback(callback, "callback"))

    def place(self) -> str:
        """Return the partition of the record, with the offset if known, as text."""
        if self.delivery is None:
            return f"topic {self.record.topic}, which was not queued"
        return self.delivery.place()

    def __repr__(self) -> str:
        state = "waiting" if not self.done() else "failed" if self._has_failed() else "stored"
        return f"SyncDelivery({self.place()}, {state})"

    def _has_failed(self) -> bool:
        return self.delivery is None or self.delivery.exception() is not None

    # ---- on the loop ----

    def settle(self, delivery: Delivery | None, error: BaseException | None) -> None:
        """Store the Delivery of the record, or the error with which the record was rejected."""
        self.delivery = delivery
        self.error = error
        if self.on_delivery is not None:
            self._producer.call_at_end(self, self.on_delivery)
        waiting, self._when_queued = self._when_queued, None
        for call in waiting or ():
            call()

    def when_done(self, call: Callable[[], None]) -> None:
        """Call `call` when the outcome is known. This may be immediately."""
        if self.delivery is not None:
            self.delivery.batch.when_done(call)
        elif self.error is not None:
            call()
        else:
            if self._when_queued is None:
                self._when_queued = []
            self._when_queued.append(lambda: self.when_done(call))

    async def until_done(self) -> None:
        """Wait until the outcome is known."""
        done = asyncio.get_running_loop().create_future()

        def wake() -> None:
            if not done.done():  # cancelled if the caller gave up
                done.set_result(None)

        self.when_done(wake)
        await done

    def call_back(self, callback: Callable[[SyncDelivery], Any]) -> None:
        """Arrange for the callback to be called in the callback thread."""
        call_back(callback, self)
