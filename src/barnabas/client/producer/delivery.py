"""Provides the handle for a record that was sent but may not have been acknowledged yet.

All records of a batch share an outcome, so each record has a small `Delivery` instead of a future.
A Delivery is used only on the producer's loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Generator
from functools import partial
from typing import Any, NamedTuple, Protocol, TypeVar

from barnabas.client import arguments
from barnabas.client.escalation import raise_on_loop
from barnabas.client.producer.accumulator import Accumulator
from barnabas.client.producer.batch import ProducerBatch
from barnabas.errors import BarnabasError
from barnabas.shielded import again

_log = logging.getLogger(__name__)


class Placed(Protocol):
    """The interface that all kinds of delivery have in common."""

    def place(self) -> str: ...


D = TypeVar("D", bound=Placed)


class RecordMetadata(NamedTuple):
    """The location of a record that was acknowledged by a broker."""

    topic: str
    partition: int
    offset: int  # -1 with acks=0, or if the broker has forgotten it
    timestamp_ms: int


class Delivery:
    """The outcome of one record. Await it to get the RecordMetadata or the error.

    It has the methods of a future that make sense for a record.
    """

    __slots__ = ("_error", "batch", "index", "timestamp_ms")

    _error: BarnabasError  # a separate copy, created on request

    def __init__(self, batch: ProducerBatch, index: int, timestamp_ms: int) -> None:
        self.batch = batch
        self.index = index
        self.timestamp_ms = timestamp_ms

    def done(self) -> bool:
        return self.batch.done

    def result(self) -> RecordMetadata:
        """Return the location of the record, or raise its error. Call this only once `done()`."""
        error = self.exception()
        if error is not None:
            raise error.with_traceback(None)
        batch, index = self._place()
        topic, partition = batch.topic_partition
        offset = batch.base_offset + index if batch.base_offset >= 0 else -1
        timestamp_ms = batch.log_append_time_ms
        return RecordMetadata(
            topic, partition, offset, self.timestamp_ms if timestamp_ms < 0 else timestamp_ms
        )

    def exception(self) -> BarnabasError | None:
        """Return why the record failed, or None if it is stored. Call this only once `done()`."""
        batch = self.batch
        if not batch.done:
            raise asyncio.InvalidStateError("the record is not acknowledged yet")
        if batch.error is None:
            return None
        failure = self._place()[0].error
        if failure is None:  # the error belongs to another part of a split batch
            return None
        # Return a separate copy, because each `raise` adds frames to the traceback of the raised
        # object.
        try:
            return self._error
        except AttributeError:
            error = self._error = again(failure)
            return error

    def _place(self) -> tuple[ProducerBatch, int]:
        """Return the batch that contained the record in the end, and its index in that batch."""
        batch = self.batch
        return batch.at(self.index) if batch.parts else (batch, self.index)

    def add_done_callback(self, callback: Callable[[Delivery], Any]) -> None:
        """Call `callback(self)` on the producer's loop once the outcome is known (PR-8).

        If the callback raises an exception, it is only logged. SystemExit and KeyboardInterrupt end
        the loop, as in any callback of a loop.
        """
        arguments.callback(callback, "callback")
        self.batch.when_done(partial(call_back, callback, self))

    def place(self) -> str:
        """Return the partition of the record, with the offset if known, as text."""
        batch, index = self._place()
        if batch.base_offset >= 0:
            return f"{batch.topic_partition} at offset {batch.base_offset + index}"
        return f"{batch.topic_partition}, without an offset"

    def __repr__(self) -> str:
        state = "waiting" if not self.done() else "failed" if self.exception() else "stored"
        return f"Delivery({self.place()}, {state})"

    def __await__(self) -> Generator[Any, None, RecordMetadata]:
        if not self.batch.done:
            yield from until_done(self.batch).__await__()
        return self.result()


def call_back(callback: Callable[[D], Any], delivery: D) -> None:
    """Call the user's callback. If it raises an exception, the exception is only logged.

    Other errors, such as SystemExit, are raised later by the loop, because the batch's other
    callbacks must run first.
    """
    try:
        callback(delivery)
    except (Exception, asyncio.CancelledError):  # CancelledError: from a future in the callback
        _log.exception("the callback of the record for %s failed", delivery.place())
    except BaseException as error:
        raise_on_loop(error)


def until_done(batch: ProducerBatch) -> asyncio.Future[None]:
    """Return a future that completes once the batch has an outcome.

    Raises ClientClosed on any loop other than the producer's, where the future would never
    complete.
    """
    batch.check_loop()
    waiter = asyncio.get_running_loop().create_future()

    def wake() -> None:
        if not waiter.done():  # cancelled if the caller gave up
            waiter.set_result(None)

    batch.when_done(wake)
    return waiter


async def wait_until_flushed(accumulator: Accumulator, wake: Callable[[], None]) -> None:
    """Wait until all records accepted so far have an outcome. `wake` wakes up the sender."""
    accumulator.flushing += 1
    wake()
    try:
        # Copy the list, because records accepted in the meantime are not waited for.
        for batch in accumulator.unfinished_batches:
            if not batch.done:
                await until_done(batch)
    finally:
        accumulator.flushing -= 1
