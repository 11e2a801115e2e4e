"""What the sender of a record holds until it is acknowledged, where there is no event loop."""

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
    """One record's way to its partition, to be asked from any thread."""

    __slots__ = ("_producer", "_when_queued", "delivery", "error", "record")

    def __init__(self, producer: SyncProducer, record: CheckedRecord) -> None:
        self._producer = producer
        self.record = record
        self.delivery: Delivery | None = None  # set on the loop, once the record is queued
        self.error: BaseException | None = None  # ... or could not be
        self._when_queued: list[Callable[[], None]] | None = None  # to be called on the loop

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
        if timeout_s is not None:
            arguments.duration(timeout_s, "timeout_s")
        if not self.done():
            self._producer.wait_for(self, timeout_s)
        if self.delivery is None:
            return self.error
        return self.delivery.exception()

    def add_done_callback(self, callback: Callable[[SyncDelivery], Any]) -> None:
        """Call `callback(self)` once the outcome is known (PR-8), on a thread for callbacks.

        There it may send, ask for results and flush; what it raises is logged, and concerns nothing
        else. Callbacks of a partition come in the order of its records; `flush` and `close` wait
        for them. Raises BufferFull where ten thousand others have been due for `max.block.ms`.
        """
        self._producer.call_when_done(self, arguments.callback(callback, "callback"))

    def place(self) -> str:
        """Which record this is, for people: as far as that is known, with its offset."""
        if self.delivery is None:
            return f"topic {self.record.topic}, which was not queued"
        return self.delivery.place()

    def __repr__(self) -> str:
        state = "waiting" if not self.done() else "failed" if self._failed() else "stored"
        return f"SyncDelivery({self.place()}, {state})"

    def _failed(self) -> bool:
        return self.delivery is None or self.delivery.batch.error is not None

    # ---- on the loop ----

    def settle(self, delivery: Delivery | None, error: BaseException | None) -> None:
        """The record is queued, or refused."""
        self.delivery = delivery
        self.error = error
        waiting, self._when_queued = self._when_queued, None
        for call in waiting or ():
            call()

    def when_done(self, call: Callable[[], None]) -> None:
        """Call once the outcome is known; at once if it is."""
        if self.delivery is not None:
            self.delivery.batch.when_done(call)
        elif self.error is not None:
            call()
        else:
            if self._when_queued is None:
                self._when_queued = []
            self._when_queued.append(lambda: self.when_done(call))

    async def until_done(self) -> None:
        """Return once the outcome is known."""
        done = asyncio.get_running_loop().create_future()

        def wake() -> None:
            if not done.done():  # cancelled, when whoever waited has gone
                done.set_result(None)

        self.when_done(wake)
        await done

    def call_back(self, callback: Callable[[SyncDelivery], Any]) -> None:
        """On the thread for callbacks."""
        call_back(callback, self, self.place)
