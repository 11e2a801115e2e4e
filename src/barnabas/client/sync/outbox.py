"""Passes records from the sending threads to the producer's loop.

    send (any thread) --> outbox --> drain (loop) --> producer
                                        `--> line of an unknown topic --> producer
                                             (or without the record's partition, as far as is known)

Records are passed on in bulk: only the first record put into an empty outbox wakes the loop. The
order within each topic is preserved. An unknown topic has a separate line, where it does not delay
other records. Every queued record has an outcome: a Delivery or an error.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

from barnabas.client.errors import BufferFull, ClientClosed
from barnabas.client.escalation import raise_on_loop
from barnabas.client.producer.batch import CheckedRecord
from barnabas.client.producer.intake import Intake
from barnabas.client.sync.delivery import SyncDelivery
from barnabas.errors import BarnabasError
from barnabas.shielded import again, shielded

_MOST_BYTES = 1_048_576  # limit for the outbox, and for each line, above which `put` blocks
_MOST_LINES = 10_000
_MOST_AT_ONCE = 100  # records passed on per turn of the sender


class Loop(Protocol):
    """The interface through which other threads use the producer's loop, a `LoopThread`."""

    def call_soon(self, callback: Callable[[], Any]) -> None: ...

    def check(self) -> None: ...


class _Line:
    """The records of an unknown topic, which are waiting for it."""

    __slots__ = ("deliveries", "size_bytes")

    def __init__(self) -> None:
        self.deliveries: deque[SyncDelivery] = deque()
        self.size_bytes = 0


class Outbox:
    """Accepts records in any thread, and passes them in order to the producer on its loop."""

    def __init__(self, intake: Intake, thread: Loop) -> None:
        self._intake = intake
        self._open_batches = intake.open_batches
        self._thread = thread
        self._max_block_ms = intake.max_block_ms
        self._most_line_bytes = intake.buffer_memory  # limit for all lines together
        self._lock = threading.Lock()  # guards the following fields
        self._changed = threading.Condition(self._lock)
        self._waiting: list[SyncDelivery] = []
        self._waiting_bytes = 0
        self._lines: dict[str, _Line] = {}
        self._line_bytes = 0
        self._is_drained = True  # no drain is running or scheduled
        self._is_closed = False
        intake.tasks.add_failure_listener(self.fail)
        # The following are used only on the loop.
        self._drain: asyncio.Task[None] | None = None
        self._passing: deque[SyncDelivery] = deque()  # taken by the drain, but not passed on
        self._passed: asyncio.Future[None]  # set when a drain has passed on all taken records
        self._serving: dict[str, asyncio.Task[None]] = {}  # the task of each line, by topic

    # ---- in any thread ----

    def put(self, delivery: SyncDelivery) -> None:
        """Accept a record. Raises BufferFull if there is no room for it within `max.block.ms`."""
        record = delivery.record
        with self._lock:
            # The common case, in which nothing is full and no topic is awaited, costs two
            # comparisons.
            if (self._waiting_bytes > _MOST_BYTES or self._lines) and self._is_crowded(record):
                self._wait_for_room(record)
            if self._is_closed:
                raise ClientClosed("the client is closed")
            self._waiting.append(delivery)
            self._waiting_bytes += record.size_bytes
            is_first, self._is_drained = self._is_drained, False
        # Wake the loop, which is a system call, once per drain.
        if is_first:
            self._thread.call_soon(self._start_drain)

    def _is_crowded(self, record: CheckedRecord) -> bool:
        if self._waiting_bytes > _MOST_BYTES:
            return True
        if self._intake.knows_place(record):
            return False
        line = self._lines.get(record.topic)
        if line is None:
            is_crowded = len(self._lines) >= _MOST_LINES
        else:
            is_crowded = line.size_bytes > _MOST_BYTES
        return is_crowded or self._line_bytes > self._most_line_bytes

    def _wait_for_room(self, record: CheckedRecord) -> None:
        self._thread.check()  # the loop cannot wait for its own drain
        there_is = self._changed.wait_for(
            lambda: self._is_closed or not self._is_crowded(record), self._max_block_ms / 1000
        )
        if not there_is:
            raise BufferFull(
                f"no room for a record for {record.topic} within {self._max_block_ms} ms "
                "(max.block.ms): earlier ones wait for brokers, or for their topics' metadata"
            )

    def count(self) -> int:
        """Return the number of records that were not handed to the producer and did not fail."""
        with self._lock:
            lines = sum(len(line.deliveries) for line in self._lines.values())
            return len(self._waiting) + len(self._passing) + lines

    def refuse(self) -> None:
        """Stop accepting records."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    # ---- on the loop ----

    async def wait_until_drained(self) -> None:
        """Wait until every record queued so far has been handed to the producer or has failed."""
        if self._waiting:
            # the thread that queued the first record may not have started it yet
            self._start_drain()
        for _ in range(2):  # once for the records being passed on, once for later ones
            if self._drain is None:
                break
            await shielded(self._passed)
        for task in list(self._serving.values()):
            await asyncio.gather(shielded(task), return_exceptions=True)

    def fail(self, error: BarnabasError) -> None:
        """Stop accepting records, and fail the remaining records."""
        self.refuse()
        self.purge(error)

    def purge(self, error: BarnabasError) -> int:
        """Fail the remaining records, and return their number."""
        with self._changed:
            waiting, self._waiting = deque(self._waiting), []
            self._waiting_bytes = 0
            left = [self._passing, waiting, *(line.deliveries for line in self._lines.values())]
            self._changed.notify_all()
        count = sum(map(len, left))
        for deliveries in left:
            _settle_all(deliveries, error)
        return count

    def _start_drain(self) -> None:
        if self._drain is None and not self._passes_now():
            self._passed = asyncio.get_running_loop().create_future()
            self._drain = self._intake.tasks.start("the outbox", self._drain_all())

    def _passes_now(self) -> bool:
        """Pass on a few records immediately if none has to wait. Returns whether all were.

        A separate task for each record of a slow sender would take three turns of the loop, and
        Python's lock would be yielded to other threads in each turn.
        """
        left = self._passing
        left.extend(self._take())
        if len(left) > _MOST_AT_ONCE:
            return False
        while left:
            delivery = left.popleft()
            if not self._joins(delivery) and not self._is_accepted(delivery):
                left.appendleft(delivery)
                return False
        left.extend(self._take())
        return not left

    def _is_accepted(self, delivery: SyncDelivery) -> bool:
        """Assign the record to a batch, or fail it. Returns False if the record has to wait."""
        # Queue the record behind any waiting records of its topic, which it must not overtake.
        if delivery.record.topic in self._serving:
            return False
        try:
            accepted = self._intake.accept(delivery.record)
        except BaseException as error:
            _refuse(delivery, error)
            return True
        if accepted is not None:
            delivery.settle(accepted, None)
        return accepted is not None

    async def _drain_all(self) -> None:
        """Pass records on in order, as fast as the producer accepts them, until none are left."""
        left = self._passing
        try:
            while left or self._has_taken():
                while left:
                    delivery = left.popleft()
                    if not self._joins(delivery):
                        await self._pass_on(delivery)
                # A caller waiting for the records taken so far is done; the records queued since
                # come next.
                self._passed.set_result(None)
                self._passed = asyncio.get_running_loop().create_future()
        except Exception as error:
            _settle_all(left, error)
            raise
        finally:
            _settle_all(left, ClientClosed("the producer was closed before that"))
            self._passed.set_result(None)
            self._drain = None

    def _has_taken(self) -> bool:
        self._passing.extend(self._take())
        return bool(self._passing)

    def _take(self) -> list[SyncDelivery]:
        with self._changed:
            deliveries, self._waiting = self._waiting, []
            self._waiting_bytes = 0
            self._is_drained = not deliveries
            self._changed.notify_all()
        return deliveries

    def _joins(self, delivery: SyncDelivery) -> bool:
        """Let the record join an open batch if it can. Returns False if a decision is needed."""
        if delivery.record.topic in self._serving:
            return False
        joined = self._open_batches.join_record(delivery.record)
        if joined is not None:
            delivery.settle(joined, None)
        return joined is not None

    async def _pass_on(self, delivery: SyncDelivery) -> None:
        topic = delivery.record.topic
        if self._intake.knows_place(delivery.record):
            serving = self._serving.get(topic)
            if serving is not None:  # its line must be sent first
                await asyncio.gather(shielded(serving), return_exceptions=True)
            await self._send(delivery)
            return
        size_bytes = delivery.record.size_bytes
        with self._changed:
            line = self._lines.setdefault(topic, _Line())
            line.deliveries.append(delivery)
            line.size_bytes += size_bytes
            self._line_bytes += size_bytes
        if topic not in self._serving:
            self._serving[topic] = self._intake.tasks.start(
                f"waiting for topic {topic!r}", self._serve(topic, line)
            )

    async def _serve(self, topic: str, line: _Line) -> None:
        """Send the records in a line once the topic is known, or fail them."""
        try:
            try:
                await self._intake.wait_for_topic(topic)
            except Exception as error:  # any error becomes the outcome of the records
                if isinstance(error, BarnabasError):
                    self._intake.on_refused(error)
                _settle_all(line.deliveries, error)
            while line.deliveries:
                await self._send(line.deliveries.popleft())
        finally:
            # Even if the task is cancelled, every queued record must have an outcome.
            _settle_all(line.deliveries, ClientClosed("the producer was closed before that"))
            with self._changed:
                self._line_bytes -= line.size_bytes
                del self._lines[topic]
                self._changed.notify_all()
            del self._serving[topic]

    async def _send(self, delivery: SyncDelivery) -> None:
        try:
            accepted = await self._intake.send(delivery.record)
        except asyncio.CancelledError:
            delivery.settle(None, ClientClosed("the producer was closed before that"))
            raise
        except BaseException as error:
            _refuse(delivery, error)
        else:
            delivery.settle(accepted, None)


def _refuse(delivery: SyncDelivery, error: BaseException) -> None:
    """Fail the record with this error. A partitioner's SystemExit is raised by the next call."""
    delivery.settle(None, error)
    if not isinstance(error, Exception):
        raise_on_loop(error)


def _settle_all(left: deque[SyncDelivery], error: Exception) -> None:
    while left:
        left.popleft().settle(None, again(error))
