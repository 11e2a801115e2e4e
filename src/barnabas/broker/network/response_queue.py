"""Queues a connection's unanswered requests, so that responses are sent in request order.

Each request has a slot, which becomes ready when the response has been encoded. The first slot that
is not ready holds back all slots after it. The queue also limits the number of unanswered requests.

Invariant: either all unanswered requests use APIs that overlap (`protocol.api`), or there is only
one unanswered request and the connection delivers no further frame until its response is sent.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Coroutine, Sequence
from functools import partial
from typing import Any

from barnabas.broker.context import Context
from barnabas.broker.network.client_connection import ClientConnection
from barnabas.broker.network.complaints import Complaints
from barnabas.broker.network.request_faults import ConnectionCut
from barnabas.broker.network.request_metrics import RequestMetrics, RequestTimes
from barnabas.broker.node import Node
from barnabas.broker.outcome import (
    Hold,
    Later,
    LaterOutcome,
    Outcome,
    Separate,
    Staged,
    StagedRun,
)
from barnabas.clock import spent_ns
from barnabas.errors import BarnabasError
from barnabas.named_tuple import NamedTuple
from barnabas.net.connection import Connection
from barnabas.protocol.api import Api
from barnabas.protocol.codec import Message
from barnabas.protocol.frame import encode_response
from barnabas.shielded import shielded
from barnabas.types import FileSlice, Part

_MAX_UNANSWERED = 64  # requests per connection before reading pauses
_MAX_KEPT_BYTES = 1024 * 1024  # total size of these requests as received and of their responses
LARGE_BYTES = 64 * 1024
"""Requests larger than this are decoded in a thread, and responses larger than this are encoded in
a thread.
"""


_RUNS_PER_LOOK = 16  # the clock is read once per this many runs

_IN_RUN = -1  # stands for the correlation ids of a run, one per request


class _Slot:
    """The place of a response, or of a run of responses, in the connection's order."""

    __slots__ = (
        "api",
        "begun_ns",
        "correlation_id",
        "is_ready",
        "kept_bytes",
        "later",
        "parts",
        "queue_ns",
        "ready_ns",
        "requests",
        "staged",
        "task",
        "times",
        "version",
        "waits_ns",
    )

    def __init__(
        self,
        api: Api,
        correlation_id: int,
        version: int,
        begun: tuple[RequestTimes, int, int],
        staged: Staged | StagedRun | None = None,
    ) -> None:
        """`begun` holds the request's metrics, the time at which its handler started, and how long
        it was queued.
        """
        self.times, self.begun_ns, self.queue_ns = begun
        self.waits_ns = 0  # when it started to wait for its outcome
        self.ready_ns = 0  # when it started to wait for earlier responses
        self.requests = 1
        self.api = api
        self.correlation_id = correlation_id
        self.version = version
        self.staged = staged
        self.is_ready = False
        self.kept_bytes = 0
        self.parts: Sequence[Part] = ()
        self.later: Coroutine[Any, Any, Any] | None = None
        self.task: asyncio.Task[None] | None = None

    def fill(self, answer: Message) -> None:
        self.fill_encoded(encode_response(self.api, self.version, self.correlation_id, answer))

    def fill_encoded(self, parts: Sequence[Part]) -> None:
        self.parts = parts
        self.is_ready = True


class Encoded(NamedTuple):
    """The encoded bytes of a response."""

    parts: Sequence[Part]
    is_last: bool = False
    """Whether the connection is closed after this response."""


class ResponseQueue:
    """Queues the unanswered requests of one connection.

    A request reuses the context of the previous request if they have the same API, version and
    client id.
    """

    __slots__ = (
        "_begun_ns",
        "_complaints",
        "_connection",
        "_context",
        "_has_handed_back",
        "_is_full",
        "_is_over",
        "_kept_bytes",
        "_metrics",
        "_muted",
        "_node",
        "_runs",
        "_slots",
        "_staged",
        "client",
        "run",
        "times",
        "wake_ns",
    )

    def __init__(
        self,
        connection: Connection,
        node: Node,
        client: ClientConnection,
        complaints: Complaints,
        metrics: RequestMetrics,
    ) -> None:
        self._connection = connection
        self._metrics = metrics
        self.times: RequestTimes | None = None
        """The metrics of the current request, until it is answered or has a slot."""
        self._begun_ns = 0
        self._runs = 0
        self.wake_ns = 0
        """The time at which the first request of this wake-up began, or 0 if there was none."""
        self._complaints = complaints
        self._node = node
        self.client = client
        self._context: Context | None = None  # the context of the last request
        self._slots: deque[_Slot] = deque()
        self._staged: list[_Slot] = []
        self._is_full = False
        self._is_over = False
        self._has_handed_back = False  # the next request waits until all are answered
        self._muted: asyncio.TimerHandle | None = None  # until the end of the throttle time
        self._kept_bytes = 0
        self.run: StagedRun | None = None
        """The run that the last request started or joined.

        The next request may join it until it is written at the end of this wake-up.
        """

    def context_for(self, api: Api, version: int, client_id: str | None) -> Context:
        """Reuse the last request's context if both requests are of the same kind. Otherwise, create
        a new context.
        """
        context = self._context
        if (
            context is None
            or context.version != version
            or context.api is not api
            or context.client_id != client_id
        ):
            context = self._context = Context(self._node, self.client, api, version, client_id)
        return context

    @property
    def client_id(self) -> str | None:
        """Return the client id of the last request."""
        return None if self._context is None else self._context.client_id

    @property
    def peer_address(self) -> tuple[str, int]:
        return self._connection.peer_address

    @property
    def has_unanswered(self) -> bool:
        """Return whether the client is waiting for a response."""
        return bool(self._slots)

    @property
    def waiting(self) -> list[str]:
        """Return the APIs of the requests whose outcome is being awaited."""
        return [each.api.name for each in self._slots if each.waits_ns and not each.is_ready]

    def holds_back(self, frame: memoryview) -> bool:
        """Hold back a request whose API does not overlap until all earlier requests have been
        answered.

        Returns False if there are no unanswered requests. Otherwise, the connection will deliver
        the frame again later.
        """
        if self._staged:
            self._write_and_answer()
        if not self._slots:
            return False
        self._has_handed_back = True
        self._connection.hand_back(frame)
        return True

    def begin(self, times: RequestTimes) -> None:
        """Start timing the handler of a request. The result is recorded in `times`."""
        now_ns = self._begun_ns = spent_ns()
        if not self.wake_ns:
            self.wake_ns = now_ns
        self.times = times
        send_queue = self._connection.send_queue
        if send_queue.blocked_ns:
            times.send.add(send_queue.blocked_ns)
            send_queue.blocked_ns = 0

    def _begun(self, api: Api, version: int) -> tuple[RequestTimes, int, int]:
        """Return the metrics, the time at which the handler started, and how long the request was
        queued.
        """
        times, self.times = self.times, None
        if times is None:  # answered without a handler
            return self._metrics.of(api.name, version), spent_ns(), 0
        return times, self._begun_ns, self._begun_ns - self.wake_ns

    def _count_run(self, slot: _Slot, requests: int) -> None:
        """Record the requests of a run with the time of the run.

        If that time was not measured, they are counted with the next measured run.
        """
        times = slot.times
        if slot.begun_ns:
            slot.requests = requests + times.untimed
            times.untimed = 0
        else:
            times.untimed += requests

    def _count(self, slot: _Slot, now_ns: int) -> None:
        """Record the times of a request that has been answered."""
        ready_ns = slot.ready_ns or now_ns
        acted_ns = slot.waits_ns or ready_ns
        local_ns, remote_ns = acted_ns - slot.begun_ns, ready_ns - acted_ns
        phases = slot.queue_ns, local_ns, remote_ns, now_ns - ready_ns
        slot.times.record(phases, slot.requests)

    def answer(
        self,
        api: Api,
        correlation_id: int,
        version: int,
        outcome: Outcome,
        kept_bytes: int = 0,
    ) -> None:
        """Answer a request with the outcome of its handler, after all earlier requests.

        `kept_bytes` is the number of bytes of the request that stay in memory until it is answered.
        """
        self.run = None
        if isinstance(outcome, Staged):
            slot = _Slot(api, correlation_id, version, self._begun(api, version), outcome)
            slot.kept_bytes = kept_bytes
            self._kept_bytes += kept_bytes
            self._slots.append(slot)
            self._staged.append(slot)
            # The request holds back all later requests, so no other can be grouped with it.
            if not api.overlaps:
                self._write_and_answer()
            return
        # All earlier requests have been answered, so the response is sent without a slot.
        if isinstance(outcome, Message) and not self._slots:
            self._connection.write(encode_response(api, version, correlation_id, outcome))
            times, begun_ns, queue_ns = self._begun(api, version)
            times.record((queue_ns, spent_ns() - begun_ns, 0, 0))
            self._metrics.count_errors(times, outcome)
            return
        slot = _Slot(api, correlation_id, version, self._begun(api, version))
        self._slots.append(slot)
        slot.kept_bytes = kept_bytes
        self._kept_bytes += kept_bytes
        if isinstance(outcome, Message):
            self._fill(slot, outcome)
        elif isinstance(outcome, Hold):
            self._connection.pause_reading()
            # The handler will read from its views of the request, so keep the memory reserved.
            reservation = self._connection.reservation
            reservation.is_kept = reservation.size_bytes > 0
            self._wait(slot, outcome.until, held=True)
        else:
            self._wait(slot, outcome, held=False)
        self._check_limit()

    def answer_encoded(
        self, api: Api, version: int, answer: Encoded | Coroutine[Any, Any, Encoded]
    ) -> None:
        """Answer a request of this API, after all earlier requests and before all later ones."""
        self.run = None
        slot = _Slot(api, _IN_RUN, version, self._begun(api, version))
        self._slots.append(slot)
        if isinstance(answer, Encoded):
            self._finish(slot, answer)
            return
        self._connection.hold_frames()
        slot.later = answer
        slot.waits_ns = spent_ns()
        slot.task = asyncio.get_running_loop().create_task(self._await_encoded(slot, answer))

    async def _await_encoded(self, slot: _Slot, later: Coroutine[Any, Any, Encoded]) -> None:
        try:
            self._finish(slot, await later)
        except Exception as error:
            self._give_up(slot, error)
        if not self._connection.is_closing:
            self._connection.release_frames()

    def _finish(self, slot: _Slot, answer: Encoded) -> None:
        slot.fill_encoded(answer.parts)
        self._send_ready()
        if answer.is_last:
            self._connection.close()

    def begin_run(self, api: Api, version: int, run: StagedRun, times: RequestTimes) -> None:
        """Answer the requests that join this run, after all earlier requests."""
        now_ns = queue_ns = 0
        if self._runs % _RUNS_PER_LOOK == 0:
            now_ns = spent_ns()
            queue_ns = now_ns - self.wake_ns if self.wake_ns else 0
        self._runs += 1
        slot = _Slot(api, _IN_RUN, version, (times, now_ns, queue_ns), run)
        self._slots.append(slot)
        self._staged.append(slot)
        self.run = run

    def _write_and_answer(self) -> None:
        """Answer the staged requests now rather than at the end of this wake-up."""
        self._node.replicas.write_staged()
        self.answer_staged()

    def answer_staged(self) -> None:
        """Build the responses that were waiting for the logs to be written."""
        if not self._staged:
            return
        staged, self._staged, self.run = self._staged, [], None
        for slot in staged:
            own, slot.staged = slot.staged, None  # it may reference the request
            try:
                if isinstance(own, Staged):
                    self._settle(slot, own.answer())
                elif own is not None:
                    answers = own.answers()
                    if isinstance(answers, bytes):
                        self._count_run(slot, len(own))
                        slot.fill_encoded((answers,))
                    else:
                        self._separate(slot, answers)
            except Exception as error:
                self._give_up(slot, error)
        self._send_ready()
        self._check_limit()

    def _settle(self, slot: _Slot, answer: Message | Later | None) -> None:
        if answer is None:
            self._drop(slot)
        elif isinstance(answer, Message):
            self._fill(slot, answer)
        else:
            self._wait(slot, answer, held=False)

    def _separate(self, slot: _Slot, answers: list[Separate]) -> None:
        """Replace a run with a separate slot for each of its requests."""
        # Insert the slots where the run was, so that the responses stay in order.
        at = self._slots.index(slot)
        del self._slots[at]
        for correlation_id, answer in reversed(answers):
            # Each request now waits by itself, so each request is measured even if the run was not.
            begun = slot.times, slot.begun_ns or spent_ns(), slot.queue_ns
            own = _Slot(slot.api, correlation_id, slot.version, begun)
            self._slots.insert(at, own)
            self._settle(own, answer)

    def _fill(self, slot: _Slot, answer: Message) -> None:
        """Store the response in its slot, where it stays until all earlier responses have been
        sent.
        """
        slot.fill(answer)
        self._metrics.count_errors(slot.times, answer)
        if slot is not self._slots[0]:
            slot.ready_ns = spent_ns()
            size = sum(map(len, slot.parts))
            slot.kept_bytes += size
            self._kept_bytes += size

    def _drop(self, slot: _Slot) -> None:
        """Remove the slot of a request that gets no response."""
        self._slots.remove(slot)
        self._kept_bytes -= slot.kept_bytes
        self._count(slot, spent_ns())

    def _check_limit(self) -> None:
        # Do not count the requests that are waiting for the write at the end of this wake-up. They
        # are limited by the receive buffer.
        is_over = len(self._slots) - len(self._staged) >= _MAX_UNANSWERED
        if (is_over or self._kept_bytes >= _MAX_KEPT_BYTES) and not self._is_full:
            self._is_full = True
            self._connection.pause_reading()

    def _wait(self, slot: _Slot, later: LaterOutcome, *, held: bool) -> None:
        if not slot.api.overlaps:
            self._connection.hold_frames()
        slot.later = later
        slot.waits_ns = spent_ns()
        slot.task = asyncio.get_running_loop().create_task(self._await(slot, later, held))

    async def _await(self, slot: _Slot, later: LaterOutcome, held: bool) -> None:
        try:
            outcome = await later
            if held and isinstance(outcome, Staged | Coroutine):
                held = False
                self._end_hold()
            if isinstance(outcome, Staged):
                self._node.replicas.write_staged()
                outcome = outcome.answer()
            answer = await outcome if isinstance(outcome, Coroutine) else outcome
            if self._is_over:
                # In Python 3.11, `asyncio.wait_for` swallows a cancellation that coincides with
                # a result.
                if answer is not None:
                    slot.fill(answer)
                    _release(slot.parts)
                return
            if answer is None:
                self._drop(slot)
            elif slot.kept_bytes > LARGE_BYTES:
                slot.fill_encoded(await _encode(slot, answer))
                self._metrics.count_errors(slot.times, answer)
            else:
                self._fill(slot, answer)
        except Exception as error:
            self._give_up(slot, error)
        self._send_ready()
        self._check_limit()
        if held and not self._connection.is_closing:
            self._end_hold()
        if not slot.api.overlaps and not self._connection.is_closing:
            self._connection.release_frames()

    def _end_hold(self) -> None:
        """Release the request's bytes, so that the next request can be read."""
        if self._connection.reservation.is_kept:
            self._connection.reservation.free()
        self._connection.resume_reading()

    def _give_up(self, slot: _Slot, error: Exception) -> None:
        """Close the connection. Later responses must not be sent if the failed response is
        missing.
        """
        address, what = self._connection.peer_address, f"{slot.api.name} failed"
        if isinstance(error, BarnabasError):
            level = logging.INFO if isinstance(error, ConnectionCut) else logging.WARNING
            reason = f"{what}: {error}"
            self._complaints.report(address, "connection closed", reason, level=level)
            self._connection.close()
        else:
            self._complaints.report(address, what, error, level=logging.ERROR, bug=error)
            self._connection.abort()

    def _send_ready(self) -> None:
        slots = self._slots
        now_ns = 0
        while slots and slots[0].is_ready:
            slot = slots.popleft()
            self._kept_bytes -= slot.kept_bytes
            self._connection.write(slot.parts)
            if slot.begun_ns:  # otherwise it is in an unmeasured run and already counted
                now_ns = now_ns or spent_ns()
                self._count(slot, now_ns)
        has_room = len(slots) < _MAX_UNANSWERED and self._kept_bytes < _MAX_KEPT_BYTES
        if self._is_full and has_room and not self._connection.is_closing:
            self._is_full = False
            self._connection.resume_reading()
        # Deliver the request that was held back again.
        if self._has_handed_back and not slots and not self._connection.is_closing:
            self._has_handed_back = False
            self._connection.release_frames()

    def mute(self, time_ms: int) -> None:
        """Stop reading requests for this time. Responses are still sent in the meantime."""
        loop = asyncio.get_running_loop()
        until = loop.time() + time_ms / 1000
        if self._muted is None:
            self._connection.pause_reading()
        # If there are several throttle times, the longest applies (KIP-219).
        elif until <= self._muted.when():
            return
        else:
            self._muted.cancel()
        self._muted = loop.call_at(until, self._unmute)

    def _unmute(self) -> None:
        self._muted = None
        if not self._connection.is_closing:
            self._connection.resume_reading()

    def cancel(self) -> None:
        """Cancel all responses because the connection has been closed."""
        if self._muted is not None:
            self._muted.cancel()
            self._muted = None
        for slot in self._slots:
            if slot.task is not None and not slot.is_ready:
                slot.task.cancel()
                # If a task is cancelled before it starts, it never runs, so its coroutine must be
                # closed.
                slot.task.add_done_callback(partial(_close, slot.later))
            _release(slot.parts)
        self._is_over = True
        self._slots.clear()
        self._staged.clear()


async def _encode(slot: _Slot, response: Message) -> Sequence[Part]:
    """Encode a long response, which may take a second, in a thread.

    Every few milliseconds, the thread lets the event loop run.
    """
    encoding = asyncio.get_running_loop().run_in_executor(
        None, encode_response, slot.api, slot.version, slot.correlation_id, response
    )
    try:
        return await shielded(encoding)
    except asyncio.CancelledError:
        encoding.add_done_callback(_release_encoded)
        raise


def _release_encoded(encoding: asyncio.Future[list[Part]]) -> None:
    if encoding.exception() is None:
        _release(encoding.result())


def _release(parts: Sequence[Part]) -> None:
    """Release the slices of a response that is not going to be sent."""
    for part in parts:
        if isinstance(part, FileSlice):
            part.release()


def _close(later: Coroutine[Any, Any, Any] | None, _task: asyncio.Task[None]) -> None:
    if later is not None:
        later.close()
