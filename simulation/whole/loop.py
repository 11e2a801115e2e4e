"""The event loop: it works like asyncio's, but time is virtual and everything is a function of the
seed.

When nothing is ready, the clock jumps to the next timer. Handles of one instant run in the order in
which they were created. There are no threads. Work given to a thread runs on the loop a little
later, and its outcome arrives after the time that the work has cost. An executor has a fixed number
of threads. Connections belong to the network (`sockets`).

The price of a turn (`costs`) is counted in addition to the time that passes. It holds its process
up for that time, and must not exceed the process's budget.

If the loop turns without time passing, or if nothing can happen, it ends with an error that says
what is to blame. Unhandled exceptions are collected as findings.
"""

from __future__ import annotations

import asyncio
import gc
import heapq
import logging
import warnings
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Coroutine
from contextvars import Context
from functools import partial
from random import Random
from typing import Any, NamedTuple, Protocol, TypeVar

from simulation.whole import costs
from simulation.whole.lives import CURRENT, Life, ProcessOver

T = TypeVar("T")

_SPIN_STEPS = 200_000  # a broker's busiest instant has a few hundred
_SPIN_SAMPLE = 1000
_FEWEST_CANCELLED = 200
_THREAD_DELAYS_US = (30, 100, 100, 250, 800)
_SLOW_THREAD_US = 12_000


class LoopError(Exception):
    """The run cannot go on: it spins, hangs, or takes too long."""


class Finding(NamedTuple):
    """An exception that was not handled."""

    at_us: int
    life: str
    message: str
    error: BaseException | None


class Wires(Protocol):
    """The loop's interface to the network."""

    async def connect(
        self, factory: Callable[[], asyncio.BaseProtocol], host: str, port: int
    ) -> tuple[asyncio.Transport, asyncio.BaseProtocol]: ...

    async def adopt(
        self, factory: Callable[[], asyncio.BaseProtocol], sock: object
    ) -> tuple[asyncio.Transport, asyncio.BaseProtocol]: ...

    def listen(self, factory: Callable[[], asyncio.BaseProtocol], port: int) -> object: ...

    def add_reader(self, descriptor: int, callback: Callable[[], object]) -> None: ...

    def remove_reader(self, descriptor: int) -> bool: ...


_Spent = dict[str, tuple[int, int, int]]
"""What a turn has spent its time on: how often, the time, and the time that a fault has added."""


class _Lane:
    """The threads of an executor of one process: how many are busy, and the work waiting for
    one."""

    __slots__ = ("busy", "executor", "waiting", "workers")

    def __init__(self, executor: object, workers: int) -> None:
        self.executor = executor  # kept, because the object is identified by its id
        self.workers = workers
        self.busy = 0
        self.waiting: deque[tuple[asyncio.Future[Any], Callable[[], object]]] = deque()


class _Future(asyncio.Future[Any]):
    """A future that knows in which life it was created: an unretrieved error of a dead process
    is not a finding."""

    __slots__ = ("life",)

    life: Life | None


class VirtualLoop(asyncio.BaseEventLoop):
    """The loop of one run. The network that is created for it sets `wires`."""

    _ready: deque[asyncio.Handle]
    _stopping: bool

    def __init__(
        self, seed: int, *, max_steps: int = 20_000_000, max_virtual_ms: int = 3_600_000
    ) -> None:
        super().__init__()
        self.now_us = 0
        self.steps = 0
        self.findings: list[Finding] = []
        self.lives: list[Life] = []
        self.wires: Wires | None = None
        self.world = Context()  # code that runs in it belongs to no life
        self._own = self.life("the world")
        self._random = Random(f"loop {seed}")
        self._timers: list[tuple[int, int, asyncio.TimerHandle]] = []
        self._timers_made = 0
        self._cancelled = 0
        self._at_once = 0
        self._spent: _Spent = {}
        self.longest_turn = (0, "")
        """The longest turn of all processes with a budget: the time that it spent, and its
        process."""
        self._lanes: dict[tuple[Life | None, int], _Lane] = {}
        self._max_steps = max_steps
        self._max_us = max_virtual_ms * 1000
        self._is_put_away = False

    # ---- a run ----

    def run(self, main: Coroutine[Any, Any, T]) -> T:
        """Run `main`, which belongs to the world, to its end. Raises LoopError."""
        was_collecting = gc.isenabled()
        gc.disable()  # it would close forgotten objects at arbitrary times
        try:
            return self.run_until_complete(main)
        finally:
            if was_collecting:
                gc.enable()

    def life(self, name: str, host: str = "") -> Life:
        """Start a new process."""
        life = Life(name, host)
        self.lives.append(life)
        return life

    def resume(self, life: Life) -> None:
        """End a pause: what should have run meanwhile runs now."""
        self._ready.extend(life.resume())

    def close(self) -> None:
        """Put everything away, without messages from unfinished tasks."""
        if self.is_closed():
            return
        self._is_put_away = True
        level = logging.root.manager.disable
        logging.disable()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # coroutines that were never started
            for life in self.lives:
                life.put_away()
            self.lives = []
            self._timers = []
            self._ready.clear()
            gc.collect()
        logging.disable(level)
        super().close()

    def _run_once(self) -> None:
        ready = self._ready
        if not ready:
            self._advance()
        count = len(ready)
        self.steps += count
        self._at_once += count
        if self._at_once > _SPIN_STEPS or self.steps > self._max_steps:
            self._give_up()
        for _ in range(count):
            handle = ready.popleft()
            if handle._cancelled:
                continue
            life = handle._context.get(CURRENT)  # type: ignore[attr-defined]
            if life is None or life.is_running:
                handle._run()
                if self._spent or (life is not None and life.turn_us):
                    self._turn_ends(life, handle)
            else:
                life.hold(handle)

    def spend(self, us: int, what: str, more_us: int = 0, until_us: int = 0) -> None:
        """Charge the present turn with an operation's time, and with `more_us` in addition if a
        fault makes it slow, unless the turn has lasted beyond that fault's end."""
        if more_us:
            begun_us = self.now_us + sum(each[1] + each[2] for each in self._spent.values())
            if begun_us >= until_us:
                more_us = 0
        times, spent_us, slow_us = self._spent.get(what, (0, 0, 0))
        self._spent[what] = times + 1, spent_us + us, slow_us + more_us

    def _take_spent(self) -> tuple[int, int, _Spent]:
        """Return the time spent since the last call, without faults and with them, and what it
        was spent on."""
        spent, self._spent = self._spent, {}
        spent_us = slow_us = 0
        for _, us, more_us in spent.values():
            spent_us += us
            slow_us += more_us
        return spent_us, spent_us + slow_us, spent

    def _turn_ends(self, life: Life | None, handle: asyncio.Handle) -> None:
        spent_us, all_us, spent = self._take_spent()
        if life is None or life.is_over:
            return
        all_us += life.turn_us
        if spent_us > self.longest_turn[0] and life.budget_us:
            self.longest_turn = spent_us, f"{life.name}: {_who(handle)}: {_breakdown(spent)}"
        if life.budget_us and spent_us > life.budget_us:
            message = f"a turn of {spent_us / 1000:.0f} ms: {_who(handle)}: {_breakdown(spent)}"
            self.findings.append(Finding(self.now_us, life.name, message, None))
        if all_us >= costs.LEAST_STALL_US:
            until_us = self.now_us + all_us
            life.stall(until_us)
            self.world_at_us(until_us, self._stall_ends, life)

    def _stall_ends(self, life: Life) -> None:
        self._ready.extend(life.stall_ends())

    def _advance(self) -> None:
        """Advance the time, since nothing can run now."""
        timers = self._timers
        while timers and timers[0][2]._cancelled:
            heapq.heappop(timers)
            self._cancelled -= 1
        if not timers:
            waiting = [line for life in self.lives for line in life.waiting_tasks()]
            raise LoopError("nothing can happen any more; waiting: " + "; ".join(waiting[:20]))
        now_us = timers[0][0]
        if now_us > self._max_us:
            raise LoopError(f"still going on after {self._max_us // 1000} virtual ms")
        self.now_us = now_us
        self._at_once = 0
        while timers and timers[0][0] <= now_us:
            handle = heapq.heappop(timers)[2]
            handle._scheduled = False  # type: ignore[attr-defined]
            if handle._cancelled:
                self._cancelled -= 1
            else:
                self._ready.append(handle)

    def _give_up(self) -> None:
        if self.steps > self._max_steps:
            raise LoopError(f"more than {self._max_steps} steps, at {self.now_us / 1e6:.3f} s")
        names: Counter[str] = Counter()
        for _ in range(_SPIN_SAMPLE):
            if not self._ready:
                break
            handle = self._ready.popleft()
            names[_who(handle)] += 1
            if not handle._cancelled:
                handle._run()
        what = "; ".join(f"{times} x {name}" for name, times in names.most_common(3))
        raise LoopError(f"spins at {self.now_us / 1e6:.6f} s, time stands still: {what}")

    # ---- asyncio's calls ----

    # It is called for every handle and future; `bool()` is False, and costs less than a method.
    get_debug = staticmethod(bool)

    def time(self) -> float:
        return self.now_us / 1e6

    def call_soon(  # type: ignore[override]
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        handle = asyncio.Handle(callback, args, self, context)
        life = CURRENT.get()
        if life is None or not life.is_over:  # a process that died in this turn starts nothing
            self._ready.append(handle)
        return handle

    def call_soon_threadsafe(  # type: ignore[override]
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        return self.call_soon(callback, *args, context=context)

    def call_later(  # type: ignore[override]
        self,
        delay: float,
        callback: Callable[..., object],
        *args: Any,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        return self.call_at(self.now_us / 1e6 + delay, callback, *args, context=context)

    def call_at(  # type: ignore[override]
        self,
        when: float,
        callback: Callable[..., object],
        *args: Any,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        when_us = round(when * 1e6)
        if when_us / 1e6 < when:
            when_us += 1  # never early: a task that checks the time would wait again
        return self._call_at_us(when_us, callback, args, context)

    def world_at_us(
        self, when_us: int, callback: Callable[..., object], *args: Any
    ) -> asyncio.TimerHandle:
        """Schedule something that belongs to no process, so that it happens whichever process is
        killed or paused."""
        return self._call_at_us(when_us, callback, args, self.world)

    def _call_at_us(
        self,
        when_us: int,
        callback: Callable[..., object],
        args: tuple[Any, ...],
        context: Context | None,
    ) -> asyncio.TimerHandle:
        handle = asyncio.TimerHandle(when_us / 1e6, callback, args, self, context)
        life = CURRENT.get()
        if life is not None and life.is_over:
            return handle
        if when_us <= self.now_us:
            self._ready.append(handle)
        else:
            self._timers_made += 1
            handle._scheduled = True  # type: ignore[attr-defined]
            heapq.heappush(self._timers, (when_us, self._timers_made, handle))
        return handle

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        if handle._scheduled:  # type: ignore[attr-defined]
            self._cancelled += 1
            if self._cancelled > _FEWEST_CANCELLED and 2 * self._cancelled > len(self._timers):
                self._timers = [each for each in self._timers if not each[2]._cancelled]
                heapq.heapify(self._timers)
                self._cancelled = 0

    def create_future(self) -> asyncio.Future[Any]:
        future = _Future(loop=self)
        future.life = CURRENT.get()
        return future

    def create_task(  # type: ignore[override]
        self,
        coro: Coroutine[Any, Any, T],
        *,
        name: str | None = None,
        context: Context | None = None,
    ) -> asyncio.Task[T]:
        task = asyncio.Task(coro, loop=self, name=name, context=context)
        life = CURRENT.get() if context is None else context.get(CURRENT)
        (life or self._own).own(task)
        return task

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        if self._is_put_away or _is_of_death(context.get("exception")):
            return
        life = CURRENT.get()
        handle, future = context.get("handle"), context.get("future")
        if handle is not None:
            life = handle._context.get(CURRENT)
        elif isinstance(future, _Future):
            life = future.life
            if life is not None and life.is_over:
                return  # it died before it could ask
        name = self._own.name if life is None else life.name
        what = context.get("future") or context.get("task") or handle
        message = f"{context.get('message')}: {what!r}"
        self.findings.append(Finding(self.now_us, name, message, context.get("exception")))

    # ---- threads ----

    def run_in_executor(  # type: ignore[override]
        self, executor: object, func: Callable[..., T], *args: Any
    ) -> asyncio.Future[T]:
        life = CURRENT.get()
        lane = self._lanes.get((life, id(executor)))
        if lane is None:
            workers = int(getattr(executor, "_max_workers", costs.WORKERS))
            lane = self._lanes[life, id(executor)] = _Lane(executor, workers)
        outcome: asyncio.Future[T] = self.create_future()
        work = partial(func, *args)
        self.call_later(self._thread_delay_s(), self._in_thread, lane, outcome, work)
        return outcome

    def _in_thread(
        self, lane: _Lane, outcome: asyncio.Future[Any], work: Callable[[], object]
    ) -> None:
        # It runs even if no task waits for it: a thread that has started cannot be called back.
        if lane.busy == lane.workers:
            lane.waiting.append((outcome, work))
            return
        lane.busy += 1
        result, problem = None, None
        delay_s = self._thread_delay_s()
        self._take_spent()  # the turn's costs are not this thread's
        try:
            result = work()
        except Exception as error:
            problem = error
        delay_s += self._take_spent()[1] / 1e6
        self.call_later(delay_s, self._thread_ends, lane, outcome, result, problem)

    def _thread_ends(
        self,
        lane: _Lane,
        outcome: asyncio.Future[Any],
        result: object,
        error: Exception | None,
    ) -> None:
        lane.busy -= 1
        _settle(outcome, result, error)
        if lane.waiting:
            self._in_thread(lane, *lane.waiting.popleft())

    def _thread_delay_s(self) -> float:
        if self._random.random() < 0.01:
            return self._random.randrange(_SLOW_THREAD_US) / 1e6
        return self._random.choice(_THREAD_DELAYS_US) / 1e6

    # ---- connections ----

    async def getaddrinfo(  # type: ignore[override]
        self, host: str, port: int, **how: object
    ) -> list[tuple[int, int, int, str, tuple[str, int]]]:
        """Return the host itself: the hosts of this world have no addresses but their names."""
        return [(0, 0, 0, "", (host, port))]

    async def create_connection(  # type: ignore[override]
        self, protocol_factory: Callable[[], asyncio.BaseProtocol], host: str, port: int
    ) -> tuple[asyncio.Transport, asyncio.BaseProtocol]:
        return await self._network().connect(protocol_factory, host, port)

    async def create_server(  # type: ignore[override]
        self, factory: Callable[[], asyncio.BaseProtocol], host: str, port: int, **how: object
    ) -> object:
        return self._network().listen(factory, port)

    async def connect_accepted_socket(  # type: ignore[override]
        self, protocol_factory: Callable[[], asyncio.BaseProtocol], sock: object
    ) -> tuple[asyncio.Transport, asyncio.BaseProtocol]:
        return await self._network().adopt(protocol_factory, sock)

    def add_reader(  # type: ignore[override]
        self, fd: int, callback: Callable[[], object]
    ) -> None:
        self._network().add_reader(fd, callback)

    def remove_reader(self, fd: Any) -> bool:
        return self._network().remove_reader(fd)

    def _network(self) -> Wires:
        assert self.wires is not None, "no network has been made for this loop"
        return self.wires


def _is_of_death(error: BaseException | None) -> bool:
    """Return whether an error was raised on the way out of a dead process."""
    while error is not None:
        if isinstance(error, ProcessOver):
            return True
        error = error.__context__
    return False


def _who(handle: asyncio.Handle) -> str:
    """Return the name of the coroutine whose next step this is, or a text about the handle if there
    is none.
    """
    callback = handle._callback  # type: ignore[attr-defined]
    for each in (getattr(callback, "__self__", None), *gc.get_referents(callback)):
        if isinstance(each, asyncio.Task):
            return str(getattr(each.get_coro(), "__qualname__", each))
    return repr(handle)


def _breakdown(spent: _Spent) -> str:
    """Return a text that states what a turn has spent its time on."""
    return ", ".join(f"{each[0]} x {what}" for what, each in spent.items())


def _settle(outcome: asyncio.Future[Any], result: object, error: Exception | None) -> None:
    if outcome.done():
        return
    if error is None:
        outcome.set_result(result)
    else:
        outcome.set_exception(error)


async def within(limit_ms: int, work: Awaitable[T]) -> T:
    """Return the result of the work. Raises TimeoutError after this much virtual time."""
    async with asyncio.timeout(limit_ms / 1000):
        return await work
