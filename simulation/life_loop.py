"""An asyncio event loop over the world's heap: a broker's own shells run on it unchanged.

Each life has a loop. Its callbacks are events of that life: they end with it, wait while it is
paused, and happen in the order in which they were scheduled. It has timers, futures and tasks, but
neither sockets nor signals. Work meant for a thread happens a little later.
"""

from __future__ import annotations

import asyncio
import inspect
import math
from collections.abc import Callable, Coroutine
from contextvars import Context
from typing import Any, TypeVar

from simulation.world import Life, World

T = TypeVar("T")

_DISK_MS = 40


class LifeLoop(asyncio.AbstractEventLoop):
    """The loop of one life of a process."""

    def __init__(self, world: World, life: Life, name: str) -> None:
        self._world = world
        self._life = life
        self._name = name
        self._tasks: dict[asyncio.Task[Any], Coroutine[Any, Any, Any]] = {}

    def __str__(self) -> str:
        return self._name

    def start(self, work: Coroutine[Any, Any, object]) -> None:
        """Run a coroutine, beginning at the present instant."""
        self.create_task(work)

    def call(self, action: Callable[..., T], *values: object) -> T:
        """Call the action now, as if it were a callback of this loop, and return its result."""
        before = asyncio._get_running_loop()
        asyncio._set_running_loop(self)
        try:
            return action(*values)
        finally:
            asyncio._set_running_loop(before)

    def put_away(self) -> None:
        """Close the coroutines that have not begun, because no event of this loop will happen and
        Python would warn about them."""
        for work in self._tasks.values():
            if inspect.getcoroutinestate(work) == inspect.CORO_CREATED:
                work.close()
        self._tasks.clear()

    # --- what asyncio uses -----------------------------------------------------------------------

    def time(self) -> float:
        return self._world.now_ms / 1000

    def get_debug(self) -> bool:
        return False

    def call_soon(  # type: ignore[override]
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        handle = asyncio.Handle(callback, args, self, context)
        self._world.at(0, self._life, self._run, handle)
        return handle

    def call_later(  # type: ignore[override]
        self,
        delay: float,
        callback: Callable[..., object],
        *args: Any,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        return self.call_at(self.time() + delay, callback, *args, context=context)

    def call_at(  # type: ignore[override]
        self,
        when: float,
        callback: Callable[..., object],
        *args: Any,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        handle = asyncio.TimerHandle(when, callback, args, self, context)
        # The timer is never early, because a caller that checks the time would wait again.
        delay_ms = math.ceil(round(when * 1000, 6)) - self._world.now_ms
        self._world.at(max(delay_ms, 0), self._life, self._run, handle)
        return handle

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """Do nothing, because the timer is skipped when its time comes."""

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    def create_task(  # type: ignore[override]
        self,
        coro: Coroutine[Any, Any, T],
        *,
        name: str | None = None,
        context: Context | None = None,
    ) -> asyncio.Task[T]:
        task = asyncio.Task(coro, loop=self, name=name, context=context)
        task._log_destroy_pending = False  # type: ignore[attr-defined]  # a life may end at any time
        task.add_done_callback(self._ended)
        self._tasks[task] = coro
        if self._life.is_over:
            self.put_away()
        return task

    def run_in_executor(  # type: ignore[override]
        self, executor: object, func: Callable[..., T], *args: Any
    ) -> asyncio.Future[T]:
        """Run the function a little later, without a thread."""
        outcome: asyncio.Future[T] = self.create_future()

        def finish() -> None:
            if not outcome.cancelled():
                outcome.set_result(func(*args))

        delay_ms = self._world.random.randrange(_DISK_MS)
        self._world.at(delay_ms, self._life, finish)
        return outcome

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """End the run on an error in a callback, but not on an error that no caller has
        retrieved."""
        if "handle" in context:
            self._world.fail(context["exception"])

    # ---------------------------------------------------------------------------------------------

    def _run(self, handle: asyncio.Handle) -> None:
        if not handle.cancelled():
            self.call(handle._run)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        """End the run if a task failed, because no shell lets an expected error out of a task."""
        self._tasks.pop(task, None)
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self._world.fail(error)


def loop_of(world: World, life: Life, name: str) -> LifeLoop:
    """Return the loop of a life; `name` is its name in the story."""
    loop = LifeLoop(world, life, name)  # type: ignore[abstract]  # it lacks what nothing here uses
    world.loops.append(loop)
    return loop
