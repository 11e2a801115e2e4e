"""A session's connection with one of the metadata store's servers.

Messages arrive later and in order, in each direction; a cut holds them up, and when one side gives
up, the messages under way may be lost from some message on. The server's side runs in the world's
context, and the client's side in its owner's context. A message from a killed process therefore
still arrives, but no message arrives at that process.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from contextvars import Context
from random import Random
from typing import Any, NamedTuple

from barnabas.cluster.store import MetadataError
from simulation.whole.lives import CURRENT, Life

_SLOW_SHARE = 0.02


class Timing(NamedTuple):
    """The delays of messages and servers."""

    least_ms: float = 0.2
    most_ms: float = 4.0
    """The limits of the time that a message is on its way."""
    slow_ms: float = 60.0
    """One message in fifty takes up to this time."""
    lag_ms: float = 25.0
    """How far the servers, and what is read there, may be behind the server that decides."""


class Broken(Exception):
    """The connection is gone, and so is the answer."""


class Lane:
    """One direction: calls that happen later at the other end, one after another."""

    __slots__ = ("_calls", "_context", "_held", "_last_at", "_random", "_timing", "is_held")

    def __init__(self, context: Context, random: Random, timing: Timing) -> None:
        """`context`: the context in which the calls happen."""
        self._context = context
        self._random = random
        self._timing = timing
        self._calls: deque[tuple[Callable[..., object], tuple[Any, ...]]] = deque()
        self._last_at = 0.0
        self._held = 0
        self.is_held = False

    def send(self, call: Callable[..., object], *arguments: Any) -> None:
        self._calls.append((call, arguments))
        self._bring()

    def release(self) -> None:
        """Deliver what was held up, since the cut has healed."""
        self.is_held = False
        held, self._held = self._held, 0
        for _ in range(held):
            self._bring()

    @property
    def life(self) -> Life | None:
        """Return the life in which its calls run; None is the world."""
        return self._context.get(CURRENT)

    def lose(self, *, is_all: bool = False) -> None:
        """Lose everything still under way, or everything after some message."""
        keep = 0 if is_all else self._random.randint(0, len(self._calls))
        while len(self._calls) > keep:
            self._calls.pop()

    def _bring(self) -> None:
        loop = asyncio.get_running_loop()
        timing, random = self._timing, self._random
        is_slow = random.random() < _SLOW_SHARE
        most_ms = timing.slow_ms if is_slow else timing.most_ms
        delay_ms = timing.least_ms + random.random() * (most_ms - timing.least_ms)
        self._last_at = max(loop.time() + delay_ms / 1000, self._last_at)
        loop.call_at(self._last_at, self._arrive, context=self._context)

    def _arrive(self) -> None:
        if self.is_held:
            self._held += 1
        elif self._calls:
            call, arguments = self._calls.popleft()
            call(*arguments)


class Link:
    """A connection.

    `on_change` and `on_end` belong to its client and are called as messages arrive.
    """

    __slots__ = ("_answers", "back", "heard_at", "is_served", "on_change", "on_end", "there")

    def __init__(
        self,
        there: Lane,
        back: Lane,
        on_change: Callable[[str], None],
        on_end: Callable[[Link], None],
    ) -> None:
        self.there = there
        self.back = back
        self.on_change = on_change
        self.on_end = on_end
        self.is_served = True
        self.heard_at = asyncio.get_running_loop().time()
        """When the client last heard from the server."""
        self._answers: dict[asyncio.Future[Any], None] = {}

    # --- the client's side -----------------------------------------------------------------------

    def ask(self, question: Callable[..., Any], *arguments: Any) -> asyncio.Future[Any]:
        """Return what the question returns at the server, or raise the MetadataError that it
        raises there, or Broken."""
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._answers[answer] = None
        self.there.send(self._asked, question, arguments, answer)
        return answer

    def hold(self) -> None:
        """Hold messages up because the network is cut."""
        self.there.is_held = self.back.is_held = True

    def release(self) -> None:
        self.there.release()
        self.back.release()

    def give_up(self) -> None:
        """Give up the connection on the client's side; what it has sent may still arrive for a
        while."""
        self.there.lose()
        self.back.lose(is_all=True)
        self.give_up_waiting()

    def give_up_waiting(self) -> None:
        answers, self._answers = self._answers, {}
        for answer in answers:
            if not answer.done():
                _fail(answer, Broken())

    # --- the server's side -----------------------------------------------------------------------

    def drop(self) -> None:
        """Give up the connection on the server's side."""
        if self.is_served:
            self.is_served = False
            self.back.lose()
            self.back.send(self.on_end, self)

    def _asked(
        self, question: Callable[..., Any], arguments: tuple[Any, ...], answer: asyncio.Future[Any]
    ) -> None:
        if not self.is_served:
            return
        try:
            result = question(*arguments)
        except MetadataError as error:
            self.back.send(self._answered, answer, None, error)
        else:
            self.back.send(self._answered, answer, result, None)

    def _answered(
        self, answer: asyncio.Future[Any], result: Any, error: MetadataError | None
    ) -> None:
        self.heard_at = asyncio.get_running_loop().time()
        self._answers.pop(answer, None)
        if answer.done():
            return
        if error is None:
            answer.set_result(result)
        else:
            _fail(answer, error)


def _fail(answer: asyncio.Future[Any], error: Exception) -> None:
    answer.set_exception(error)
    answer.exception()  # retrieved: the task that waited for it may be dead
