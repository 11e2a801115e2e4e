"""What the sender of a record holds until the broker has acknowledged it.

A record costs one small `Delivery`, not a future of its own: all records of a batch share its one
outcome. A Delivery is used on the producer's loop only.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Generator
from typing import Any, NamedTuple, TypeVar

from barnabas.client import arguments
from barnabas.client.producer.accumulator import Accumulator
from barnabas.client.producer.batch import ProducerBatch
from barnabas.errors import BarnabasError

_log = logging.getLogger(__name__)

D = TypeVar("D")


class RecordMetadata(NamedTuple):
    """Where a record is: what the broker acknowledged."""

    topic: str
    partition: int
    offset: int  # -1 with acks=0, and where the broker no longer knows it
    timestamp_ms: int


class Delivery:
    """One record's way to its partition. Await it for the RecordMetadata, or the KafkaError.

    Has the methods of a future that make sense for it.
    """

    __slots__ = ("batch", "index", "timestamp_ms")

    def __init__(self, batch: ProducerBatch, index: int, timestamp_ms: int) -> None:
        self.batch = batch
        self.index = index
        self.timestamp_ms = timestamp_ms

    def done(self) -> bool:
        return self.batch.done

    def result(self) -> RecordMetadata:
        """What the broker acknowledged; raises what went wrong. Only once `done()`."""
        batch = self.batch
        if not batch.done:
            raise asyncio.InvalidStateError("the record is not acknowledged yet")
        if batch.error is not None:
            raise batch.error
        topic, partition = batch.topic_partition
        offset = batch.base_offset + self.index if batch.base_offset >= 0 else -1
        timestamp_ms = batch.log_append_time_ms
        return RecordMetadata(
            topic, partition, offset, self.timestamp_ms if timestamp_ms < 0 else timestamp_ms
        )

    def exception(self) -> BarnabasError | None:
        if not self.batch.done:
            raise asyncio.InvalidStateError("the record is not acknowledged yet")
        return self.batch.error

    def add_done_callback(self, callback: Callable[[Delivery], Any]) -> None:
        """Call `callback(self)` on the producer's loop once the outcome is known (PR-8).

        What it raises is logged, and concerns nothing else.
        """
        arguments.callback(callback, "callback")
        self.batch.when_done(lambda: call_back(callback, self, self.place))

    def place(self) -> str:
        """Which record this is, for people: as far as that is known, with its offset."""
        batch = self.batch
        if batch.base_offset >= 0:
            return f"{batch.topic_partition} at offset {batch.base_offset + self.index}"
        return f"{batch.topic_partition}, without an offset"

    def __repr__(self) -> str:
        state = "waiting" if not self.batch.done else "failed" if self.batch.error else "stored"
        return f"Delivery({self.place()}, {state})"

    def __await__(self) -> Generator[Any, None, RecordMetadata]:
        if not self.batch.done:
            yield from until_done(self.batch).__await__()
        return self.result()


def call_back(callback: Callable[[D], Any], delivery: D, place: Callable[[], str]) -> None:
    """Call a user's callback; what it raises is the user's, and ends here."""
    try:
        callback(delivery)
    except (Exception, asyncio.CancelledError):  # the latter: of a future that it asked
        _log.exception("the callback of the record for %s has failed", place())


def until_done(batch: ProducerBatch) -> asyncio.Future[None]:
    """A future of the running loop that is set once the batch has its outcome."""
    waiter = asyncio.get_running_loop().create_future()

    def wake() -> None:
        if not waiter.done():  # cancelled, when whoever waited has gone
            waiter.set_result(None)

    batch.when_done(wake)
    return waiter


async def flushed(accumulator: Accumulator, wake: Callable[[], None]) -> None:
    """Return once every record taken so far has its outcome; `wake` whoever sends them."""
    accumulator.flushing += 1
    wake()
    try:
        for batch in accumulator.unfinished:
            if not batch.done:
                await until_done(batch)
    finally:
        accumulator.flushing -= 1
