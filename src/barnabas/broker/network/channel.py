"""One connection's unanswered requests: each has a slot, and the slots leave in their order.

Owns the order of answers and how many may be owed. A slot is ready when its bytes are known; the
first slot that is not holds back all behind it.
"""

from __future__ import annotations

import asyncio
import logging
from abc import abstractmethod
from collections import deque
from collections.abc import Coroutine, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from barnabas.broker.context import Context
from barnabas.errors import BarnabasError
from barnabas.net.connection import Connection
from barnabas.protocol.api import Api
from barnabas.protocol.codec import Message
from barnabas.protocol.frame import encode_response
from barnabas.types import FileSlice, Part

if TYPE_CHECKING:
    from barnabas.broker.network.repeated_produce import RepeatedProduce

_log = logging.getLogger(__name__)

_MAX_OWED = 64  # unanswered requests a connection may have before it is read no further
_MAX_KEPT_BYTES = 1024 * 1024  # of these requests, as they were received
LARGE_BYTES = 64 * 1024
"""A request of more than that is decoded, and its answer encoded, in a thread."""

Later = Coroutine[Any, Any, Message | None]


class Hold(NamedTuple):
    """Stage one is not over: the connection's next frame must not overtake this one. What is
    awaited may come to another outcome: then the next frame waits no longer."""

    until: Coroutine[Any, Any, Any]


class Encoded(NamedTuple):
    """An answer whose parts are known already."""

    parts: Sequence[Part]


class Staged:
    """Stage one is done but for the writing; asked for the answer once the logs are written."""

    __slots__ = ()

    @abstractmethod
    def answer(self) -> Message | Later | bytes | list[Separate] | None:
        """The answer, what has to be awaited for it, or None if nothing is answered.

        Bytes are whole frames. A list is that of several requests that were staged as one: their
        answers do not leave together.
        """


class Separate(NamedTuple):
    """The answer of one of several requests that were staged together."""

    correlation_id: int
    answer: Message | Later


Outcome = Message | Later | Hold | Staged | None

Settled = Message | bytes | Encoded | None


class _Slot:
    """A response's place in its connection's order."""

    __slots__ = (
        "api",
        "correlation_id",
        "is_ready",
        "kept_bytes",
        "later",
        "parts",
        "staged",
        "task",
        "version",
    )

    def __init__(
        self, api: Api, correlation_id: int, version: int, staged: Staged | None = None
    ) -> None:
        self.api = api
        self.correlation_id = correlation_id
        self.version = version
        self.staged = staged
        self.is_ready = False
        self.kept_bytes = 0
        self.parts: Sequence[Part] = ()
        self.later: Later | None = None
        self.task: asyncio.Task[None] | None = None

    def fill(self, response: Message | bytes | Encoded) -> None:
        if isinstance(response, bytes):
            self.parts = (response,)
        elif isinstance(response, Encoded):
            self.parts = response.parts
        else:
            self.parts = encode_response(self.api, self.version, self.correlation_id, response)
        self.is_ready = True


class Channel:
    """What one connection is owed, and the context that its requests share."""

    __slots__ = (
        "_connection",
        "_context",
        "_is_full",
        "_kept_bytes",
        "_slots",
        "_staged",
        "last_staged",
        "repeated",
    )

    def __init__(self, connection: Connection, context: Context) -> None:
        self._connection = connection
        self._context = context
        self._slots: deque[_Slot] = deque()
        self._staged: list[_Slot] = []
        self._is_full = False
        self._kept_bytes = 0
        self.last_staged: Staged | None = None
        """What the last request was answered with, if it waits for the end of this wake-up."""
        self.repeated: RepeatedProduce | None = None
        """What is known of its Produce requests; anew when somebody else speaks through it."""

    def context_for(self, api: Api, version: int, client_id: str | None) -> Context:
        """The context of a request: the last one's, if this one is of the same kind."""
        context = self._context
        if context.version != version or context.api is not api or context.client_id != client_id:
            context = self._context = context.for_request(api, version, client_id)
        return context

    @property
    def has_staged(self) -> bool:
        return bool(self._staged)

    @property
    def is_owed(self) -> bool:
        return bool(self._slots)

    def answer(
        self,
        api: Api,
        correlation_id: int,
        version: int,
        outcome: Outcome,
        kept_bytes: int = 0,
    ) -> None:
        """Answer a request as its handler's outcome says, after all those before it.

        `kept_bytes`: how much of the request is kept until it is answered.
        """
        if isinstance(outcome, Staged):
            slot = _Slot(api, correlation_id, version, outcome)
            slot.kept_bytes = kept_bytes
            self._kept_bytes += kept_bytes
            self._slots.append(slot)
            self._staged.append(slot)
            self.last_staged = outcome
            return
        self.last_staged = None
        if outcome is None:
            return
        if isinstance(outcome, Message) and not self._slots:
            self._connection.write(encode_response(api, version, correlation_id, outcome))
            return
        slot = _Slot(api, correlation_id, version)
        self._slots.append(slot)
        slot.kept_bytes = kept_bytes
        self._kept_bytes += kept_bytes
        if isinstance(outcome, Message):
            slot.fill(outcome)
        elif isinstance(outcome, Hold):
            self._connection.pause_reading()
            self._wait(slot, outcome.until, held=True)
        else:
            self._wait(slot, outcome, held=False)
        self._check_limit()

    def answer_staged(self) -> None:
        """The logs have been written: build the answers that waited for it."""
        staged, self._staged, self.last_staged = self._staged, [], None
        for slot in staged:
            own, slot.staged = slot.staged, None  # it may keep the request's memory
            assert own is not None
            try:
                outcome = own.answer()
                if outcome is None:
                    self._slots.remove(slot)
                    self._kept_bytes -= slot.kept_bytes
                elif isinstance(outcome, list):
                    self._separate(slot, outcome)
                else:
                    self._fill(slot, outcome)
            except Exception as error:
                self._give_up(slot, error)
        self._send_ready()
        self._check_limit()

    def _fill(self, slot: _Slot, answer: Message | bytes | Later) -> None:
        if isinstance(answer, Message | bytes):
            slot.fill(answer)
        else:
            self._wait(slot, answer, held=False)

    def _separate(self, slot: _Slot, separate: list[Separate]) -> None:
        """Give each of several requests a slot of its own, where they had one together."""
        at = self._slots.index(slot)
        del self._slots[at]
        self._kept_bytes -= slot.kept_bytes
        for correlation_id, answer in reversed(separate):
            own = _Slot(slot.api, correlation_id, slot.version)
            self._slots.insert(at, own)
            self._fill(own, answer)

    def _check_limit(self) -> None:
        # Those that wait for the writing at the end of this wake-up do not count: grouping them is
        # the point, and the receive buffer bounds them.
        is_over = len(self._slots) - len(self._staged) >= _MAX_OWED
        if (is_over or self._kept_bytes >= _MAX_KEPT_BYTES) and not self._is_full:
            self._is_full = True
            self._connection.pause_reading()

    def _wait(self, slot: _Slot, later: Later, *, held: bool) -> None:
        slot.later = later
        slot.task = asyncio.get_running_loop().create_task(self._await(slot, later, held))

    async def _await(self, slot: _Slot, later: Later, held: bool) -> None:
        try:
            outcome = await later
            if held and isinstance(outcome, Staged | Coroutine):
                held = False
                self._connection.resume_reading()
            response = await self._settled(slot, outcome)
            if response is None:
                self._slots.remove(slot)
                self._kept_bytes -= slot.kept_bytes
            else:
                slot.fill(response)
        except Exception as error:
            self._give_up(slot, error)
        self._send_ready()
        if held and not self._connection.is_closing:
            self._connection.resume_reading()

    async def _settled(self, slot: _Slot, outcome: Any) -> Settled:
        """What the outcome of a stage that was awaited comes to."""
        if isinstance(outcome, Staged):
            self._context.node.replicas.write_staged()
            outcome = outcome.answer()
        if isinstance(outcome, Coroutine):
            outcome = await outcome
        if isinstance(outcome, Message) and slot.kept_bytes > LARGE_BYTES:
            return await _encoded(slot, outcome)
        settled: Settled = outcome
        return settled

    def _give_up(self, slot: _Slot, error: Exception) -> None:
        """There will be no answer, and answers keep their order: the connection has to go."""
        host, port = self._connection.peer_address
        if isinstance(error, BarnabasError):
            _log.warning(
                "%s from %s:%d closed its connection: %s", slot.api.name, host, port, error
            )
            self._connection.close()
        else:
            _log.error("%s from %s:%d failed", slot.api.name, host, port, exc_info=error)
            self._connection.abort()

    def _send_ready(self) -> None:
        slots = self._slots
        while slots and slots[0].is_ready:
            slot = slots.popleft()
            self._kept_bytes -= slot.kept_bytes
            self._connection.write(slot.parts)
        has_room = len(slots) < _MAX_OWED and self._kept_bytes < _MAX_KEPT_BYTES
        if self._is_full and has_room and not self._connection.is_closing:
            self._is_full = False
            self._connection.resume_reading()

    def cancel(self) -> None:
        """The connection is gone: nobody will read these answers."""
        for slot in self._slots:
            if slot.task is not None and not slot.is_ready:
                slot.task.cancel()
                # A task that has not begun does not begin any more, nor what it was to await.
                slot.task.add_done_callback(partial(_close, slot.later))
            for part in slot.parts:
                if isinstance(part, FileSlice):
                    part.release()
        self._slots.clear()
        self._staged.clear()


async def _encoded(slot: _Slot, response: Message) -> Encoded:
    """A long answer is a second of work: in a thread, which gives way every few milliseconds."""
    encoding = asyncio.get_running_loop().run_in_executor(
        None, encode_response, slot.api, slot.version, slot.correlation_id, response
    )
    try:
        return Encoded(await asyncio.shield(encoding))
    except asyncio.CancelledError:
        encoding.add_done_callback(_release)
        raise


def _release(encoding: asyncio.Future[list[Part]]) -> None:
    """Nobody reads this answer any more: its slices are given back."""
    if encoding.exception() is None:
        for part in encoding.result():
            if isinstance(part, FileSlice):
                part.release()


def _close(later: Later | None, _task: asyncio.Task[None]) -> None:
    if later is not None:
        later.close()
