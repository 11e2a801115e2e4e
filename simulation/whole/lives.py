"""Decides what runs: each handle on the loop belongs to the life in whose context it was created.

A life is one run of a process. Once it is over, nothing of it runs, not even a `finally`: its tasks
stay where they were, still referenced, until the run is put away. While it is paused its handles
wait; afterwards all of them run late, in order. What belongs to no life is the world: the network,
the machines' kernels, and the writer of the story.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from contextvars import Context, ContextVar, copy_context
from typing import Any, Final, TypeVar

T = TypeVar("T")

CURRENT: Final[ContextVar[Life | None]] = ContextVar("barnabas simulated life", default=None)
"""The life whose context this is; None is the world."""

_CLOSINGS = 8  # a coroutine may await again in a `finally`, and again


class LifeOver(Exception):
    """The awaited result will never arrive, because its process was killed."""


class ProcessOver(BaseException):
    """The process is dead, so the operation is not done: raised through whatever it was executing.

    A broker's `except` clauses do not handle it as an error; a `finally` or an `__exit__` that runs
    on the way out changes no file and starts nothing on the loop.
    """


class Life:
    """One run of a process on a host, from its start to its end."""

    __slots__ = (
        "_at_end",
        "_context",
        "_held",
        "_prune_at",
        "_tasks",
        "_waiting",
        "budget_us",
        "host",
        "is_over",
        "is_paused",
        "is_running",
        "name",
        "stalled_until_us",
        "turn_us",
    )

    def __init__(self, name: str, host: str = "") -> None:
        """`host`: the name, in the network, of the machine it runs on."""
        self.name = name
        self.host = host or name
        self.is_running = True
        self.is_paused = False
        self.is_over = False
        self.budget_us = 0
        """The time that a turn of it may spend (`costs`) before that is a finding; 0 sets no
        limit."""
        self.stalled_until_us = 0
        """The time until which nothing of it runs, because a turn has spent so much."""
        self.turn_us = 0
        """The time that each turn takes, on a machine that is busy with other work."""
        self._held: list[asyncio.Handle] = []
        self._tasks: list[asyncio.Task[Any]] = []
        self._prune_at = 64
        self._waiting: dict[asyncio.Future[Any], None] = {}
        self._at_end: list[Callable[[], object]] = []
        self._context = Context()
        self._context.run(CURRENT.set, self)

    # ---- running in it ----

    def context(self) -> Context:
        """Return a new context for something that runs in this life."""
        return self._context.copy()

    def run(self, action: Callable[..., T], *values: Any) -> T:
        """Run an action now, as this life: the handles that it creates belong to it."""
        return self.context().run(action, *values)

    def start(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Start a task of this life."""
        return asyncio.get_running_loop().create_task(work, context=self.context())

    async def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Return the result of work in this life to a caller outside; raises LifeOver if there
        will be none."""
        if self.is_over:
            work.close()
            raise LifeOver(self.name)
        outcome: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._waiting[outcome] = None

        def settle(task: asyncio.Task[T]) -> None:
            if outcome.done():
                return
            if task.cancelled():
                outcome.cancel()
            elif (error := task.exception()) is not None:
                outcome.set_exception(error)
            else:
                outcome.set_result(task.result())

        self.start(work).add_done_callback(settle, context=copy_context())
        try:
            return await outcome
        finally:
            self._waiting.pop(outcome, None)

    # ---- what befalls it ----

    def kill(self) -> None:
        """End it, as `kill -9` does: nothing of it ever runs again."""
        if self.is_over:
            return
        self.is_over = True
        self.is_running = self.is_paused = False
        self._held = []
        for action in self._at_end:
            action()
        for outcome in self._waiting:
            if not outcome.done():
                outcome.set_exception(LifeOver(self.name))

    def pause(self) -> None:
        """Pause it, as SIGSTOP does; the kernel goes on receiving what others send."""
        if not self.is_over:
            self.is_paused, self.is_running = True, False

    def resume(self) -> list[asyncio.Handle]:
        """Resume it and return the held handles, which must run first (`VirtualLoop.resume`)."""
        self.is_paused = False
        return self._go_on()

    def stall(self, until_us: int) -> None:
        """Keep it busy with one of its turns until this time; it runs nothing else meanwhile."""
        if not self.is_over:
            self.stalled_until_us, self.is_running = until_us, False

    def stall_ends(self) -> list[asyncio.Handle]:
        """End a stall and return the held handles, as `resume` does."""
        self.stalled_until_us = 0
        return self._go_on()

    def _go_on(self) -> list[asyncio.Handle]:
        if self.is_paused or self.stalled_until_us:
            return []
        held, self._held = self._held, []
        self.is_running = not self.is_over
        return held

    def at_end(self, action: Callable[[], object]) -> None:
        """Run an action when it is killed."""
        self._at_end.append(action)

    # ---- the loop's side ----

    def hold(self, handle: asyncio.Handle) -> None:
        """Hold a handle whose turn came while this life was not running."""
        if not self.is_over:
            self._held.append(handle)

    def own(self, task: asyncio.Task[Any]) -> None:
        """Keep a task, since a forgotten one would be closed at a random time."""
        self._tasks.append(task)
        if len(self._tasks) >= self._prune_at:
            self._tasks = [each for each in self._tasks if not each.done()]
            self._prune_at = max(64, 2 * len(self._tasks))

    def waiting_tasks(self) -> list[str]:
        """Return what it is waiting for, for a report."""
        return [f"{self.name}: {task.get_coro()!r}" for task in self._tasks if not task.done()]

    def put_away(self) -> None:
        """Close what is still open when the run is over, in a life that cannot do anything."""
        self.is_over = True
        self.is_running = False
        for task in self._tasks:
            if task.done():
                continue
            work = task.get_coro()
            for _ in range(_CLOSINGS):
                # Errors of a `finally` do not matter here: its world is gone.
                with suppress(Exception, asyncio.CancelledError, ProcessOver):
                    self.run(work.close)
                    break
        self._tasks = []
        self._waiting = {}
