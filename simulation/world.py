"""Time and order: one heap of events, one seed, and coroutines that wait for either.

Invariant: what happens is a function of the seed alone. Events of one instant run in the order in
which they were made; nothing here asks a real clock, a hash or an address. A process is a `Life`:
when it is over its events are dropped, while it is paused they wait, in their order.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Coroutine, Generator
from random import Random
from typing import Any, Generic, NamedTuple, TypeVar

T = TypeVar("T")


class Life:
    """One run of a process, from its start to its end."""

    __slots__ = ("is_over", "paused_until_ms")

    def __init__(self) -> None:
        self.is_over = False
        self.paused_until_ms = 0


class Line(NamedTuple):
    """Something that happened, to be put into words if anybody asks."""

    at_ms: int
    text: str
    values: tuple[object, ...]


class World:
    """The clock, the heap, the dice and the story."""

    __slots__ = ("_heap", "_made", "events", "lines", "now_ms", "random")

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.now_ms = 0
        self.events = 0
        self.lines: list[Line] = []
        self._heap: list[tuple[int, int, Life | None, Callable[..., object], tuple[Any, ...]]] = []
        self._made = 0

    def at(
        self, delay_ms: int, life: Life | None, action: Callable[..., object], *values: object
    ) -> None:
        """Do it so many ms from now, if that life still goes on (None: the world's own)."""
        self._made += 1
        heapq.heappush(self._heap, (self.now_ms + delay_ms, self._made, life, action, values))

    def run_until(self, end_ms: int, is_done: Callable[[], bool] | None = None) -> None:
        """Let everything happen up to that time, or until `is_done` says so."""
        heap = self._heap
        while heap and heap[0][0] <= end_ms:
            at_ms, made, life, action, values = heapq.heappop(heap)
            if at_ms > self.now_ms:
                self.now_ms = at_ms
            if life is not None:
                if life.is_over:
                    continue
                if life.paused_until_ms > self.now_ms:
                    heapq.heappush(heap, (life.paused_until_ms, made, life, action, values))
                    continue
            self.events += 1
            action(*values)
            if is_done is not None and is_done():
                return
        self.now_ms = max(self.now_ms, end_ms)

    def tell(self, text: str, *values: object) -> None:
        """A line of the story; `text` is a format string that is filled in when it is read."""
        self.lines.append(Line(self.now_ms, text, values))

    def start(self, life: Life, work: Coroutine[Any, Any, None]) -> None:
        """Let a coroutine run until it first waits."""
        _Task(life, work).step(None, None)

    async def sleep(self, life: Life, ms: int) -> None:
        promise: Promise[None] = Promise()
        self.at(ms, life, promise.resolve, None)
        await promise

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def below(self, limit: int) -> int:
        """A number in `[0, limit)`, as the seam of entropy has it."""
        return self.random.randrange(limit)

    def uuid(self) -> bytes:
        return self.random.randbytes(16)


class Promise(Generic[T]):
    """A value that comes later, for one coroutine to wait for. Only the first answer counts."""

    __slots__ = ("_error", "_waiter", "is_done", "value")

    def __init__(self) -> None:
        self.is_done = False
        self.value: T | None = None
        self._error: Exception | None = None
        self._waiter: Callable[[Any, Exception | None], None] | None = None

    def resolve(self, value: T) -> None:
        if not self.is_done:
            self.is_done, self.value = True, value
            self._wake()

    def fail(self, error: Exception) -> None:
        if not self.is_done:
            self.is_done, self._error = True, error
            self._wake()

    def _wake(self) -> None:
        if self._waiter is not None:
            self._waiter(self.value, self._error)

    def wait(self, waiter: Callable[[Any, Exception | None], None]) -> None:
        """Have somebody called with the value or the error."""
        self._waiter = waiter
        if self.is_done:
            waiter(self.value, self._error)

    def __await__(self) -> Generator[Promise[T], Any, T]:
        value: T = yield self
        return value


class _Task:
    """A coroutine that waits for promises."""

    __slots__ = ("_life", "_work")

    def __init__(self, life: Life, work: Coroutine[Any, Any, None]) -> None:
        self._life = life
        self._work = work

    def step(self, value: object, error: Exception | None) -> None:
        if self._life.is_over:
            self._work.close()
            return
        try:
            promise = self._work.send(value) if error is None else self._work.throw(error)
        except StopIteration:
            return
        promise.wait(self.step)
