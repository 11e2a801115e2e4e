"""Time and order: one heap of events, one seed, and coroutines that wait for events.

Invariant: everything that happens is a function of the seed alone. Events of one instant run in the
order in which they were created; nothing here asks a real clock, a hash or an address. A process is
a `Life`. When it is over, its events are dropped; while it is paused, they wait in order.

Clients, disks and partitions run as plain events and as coroutines that wait for promises. A
broker's asyncio shells run on a `LifeLoop`, over the same heap.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable, Coroutine, Generator
from contextvars import Context
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from simulation.story_log import StoryLog

if TYPE_CHECKING:
    from simulation.life_loop import LifeLoop

T = TypeVar("T")

_CALENDAR_MS = 1_700_000_000_000  # what the wall clock shows when the world begins


class Life:
    """One run of a process, from its start to its end."""

    __slots__ = ("is_over", "paused_until_ms")

    def __init__(self) -> None:
        self.is_over = False
        self.paused_until_ms = 0


class Line(NamedTuple):
    """Something that happened, put into words only when it is read."""

    at_ms: int
    text: str
    values: tuple[object, ...]


class World:
    """The clock, the heap, the dice and the story; acts as a `Clock` and a `Random` for code in
    it."""

    __slots__ = (
        "_failure",
        "_heap",
        "_log",
        "_made",
        "events",
        "lines",
        "loops",
        "now_ms",
        "random",
    )

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.now_ms = 0
        self.events = 0
        self.lines: list[Line] = []
        self._heap: list[tuple[int, int, Life | None, Callable[..., object], tuple[Any, ...]]] = []
        self._made = 0
        self._failure: BaseException | None = None
        self._log = StoryLog(self)
        self.loops: list[LifeLoop] = []

    def at(
        self, delay_ms: int, life: Life | None, action: Callable[..., object], *values: object
    ) -> None:
        """Run an action this many ms from now, if that life still goes on (None: the world's
        own)."""
        self._made += 1
        heapq.heappush(self._heap, (self.now_ms + delay_ms, self._made, life, action, values))

    def run_until(self, end_ms: int, is_done: Callable[[], bool] | None = None) -> None:
        """Run everything up to this time, or until `is_done` returns True.

        Raises what an event raises, and what was given to `fail`.
        """
        with self._log:
            try:
                self._run_until(end_ms, is_done)
            except BaseException:
                self.put_away()
                raise

    def _run_until(self, end_ms: int, is_done: Callable[[], bool] | None) -> None:
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
            if self._failure is not None:
                raise self._failure
            if is_done is not None and is_done():
                return
        self.now_ms = max(self.now_ms, end_ms)

    def put_away(self) -> None:
        """Drop everything that has not happened yet."""
        for loop in self.loops:
            loop.put_away()

    def fail(self, error: BaseException) -> None:
        """End the run with this error after the present event; the first error counts."""
        self._failure = self._failure or error

    def tell(self, text: str, *values: object) -> None:
        """Add a line to the story; `text` is a format string that is filled in when it is read."""
        self.lines.append(Line(self.now_ms, text, values))

    def start(self, life: Life, work: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine until it first waits."""
        _Task(life, work).step()

    async def sleep(self, life: Life, ms: int) -> None:
        promise: Promise[None] = Promise()
        self.at(ms, life, promise.resolve, None)
        await promise

    def monotonic_ms(self) -> int:
        return self.now_ms

    def wall_ms(self) -> int:
        return _CALENDAR_MS + self.now_ms

    def latest_wall_ms(self) -> int:
        return self.wall_ms()

    def trusted_wall_ms(self) -> int:
        """Return the wall time, which never jumps here."""
        return self.wall_ms()

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def below(self, limit: int) -> int:
        """Return a number in `[0, limit)`, as the entropy seam does."""
        return self.random.randrange(limit)

    def uuid(self) -> bytes:
        return self.random.randbytes(16)


class Promise(Generic[T]):
    """A value that arrives later, for one coroutine to wait for. Only the first answer counts.

    An asyncio task can use it as a future of the running loop, because it has those parts of a
    future that tasks use.
    """

    __slots__ = ("_asyncio_future_blocking", "_error", "_waiter", "is_done", "value")

    def __init__(self) -> None:
        self.is_done = False
        self.value: T | None = None
        self._error: BaseException | None = None
        self._waiter: Callable[[], object] | None = None
        self._asyncio_future_blocking = False

    def resolve(self, value: T) -> None:
        if not self.is_done:
            self.is_done, self.value = True, value
            self._wake()

    def fail(self, error: BaseException) -> None:
        if not self.is_done:
            self.is_done, self._error = True, error
            self._wake()

    def _wake(self) -> None:
        if self._waiter is not None:
            self._waiter()

    def wait(self, waiter: Callable[[], object]) -> None:
        """Call the waiter when the value or the error has arrived."""
        self._waiter = waiter
        if self.is_done:
            waiter()

    def result(self) -> T:
        """Return the value that has arrived, or raise the error."""
        assert self.is_done, "nothing has come yet"
        if self._error is not None:
            raise self._error
        return self.value  # type: ignore[return-value]  # a promise of None has no other value

    def __await__(self) -> Generator[Promise[T], None, T]:
        if not self.is_done:
            self._asyncio_future_blocking = True
            yield self
        return self.result()

    # --- what a task of asyncio uses -------------------------------------------------------------

    def get_loop(self) -> asyncio.AbstractEventLoop:
        return asyncio.get_running_loop()

    def add_done_callback(
        self, callback: Callable[[Promise[T]], object], *, context: Context | None = None
    ) -> None:
        loop = asyncio.get_running_loop()
        self.wait(partial(loop.call_soon, callback, self, context=context))

    def cancel(self, msg: object = None) -> bool:
        if self.is_done:
            return False
        self.fail(asyncio.CancelledError())
        return True


class _Task:
    """A coroutine that waits for promises."""

    __slots__ = ("_life", "_work")

    def __init__(self, life: Life, work: Coroutine[Any, Any, None]) -> None:
        self._life = life
        self._work = work

    def step(self) -> None:
        if self._life.is_over:
            self._work.close()
            return
        try:
            promise = self._work.send(None)
        except StopIteration:
            return
        promise.wait(self.step)
