"""Runs long work in steps, either all at once or interleaved with other tasks.

A generator yields None when other tasks may run, and yields a call when it needs the disk. The
result or exception of the call is the outcome of that `yield`. A generator can also yield several
calls together, but it does not receive their outcomes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Executor
from typing import Any, TypeVar

from barnabas.broker.runtime.disk_threads import run_in

T = TypeVar("T")

Step = Callable[[], object] | Sequence[Callable[[], None]] | None
Steps = Generator[Step, Any, T]


def at_once(steps: Steps[T]) -> T:
    """Run all steps at once, and wait for the disk where necessary."""
    try:
        step = next(steps)
        while True:
            try:
                outcome = None
                if callable(step):
                    outcome = step()
                else:
                    for call in step or ():
                        call()
            except OSError as error:
                step = steps.throw(error)
            else:
                step = steps.send(outcome)
    except StopIteration as end:
        result: T = end.value
        return result


async def in_turns(steps: Steps[T], pool: Executor | None = None) -> T:
    """Run the steps on the event loop, between other tasks. Calls that need the disk run in the
    pool's threads.

    If the task is cancelled, the generator stops at a `yield`.
    """
    try:
        step = next(steps)
        while True:
            try:
                outcome = None
                # Do nothing except let other tasks run.
                if step is None:
                    await asyncio.sleep(0)
                # The step is a single call, so send its outcome to the generator.
                elif callable(step):
                    outcome = await run_in(pool, step)
                else:
                    await asyncio.gather(*(run_in(pool, call) for call in step))
            except OSError as error:
                step = steps.throw(error)
            else:
                step = steps.send(outcome)
    except StopIteration as end:
        result: T = end.value
        return result
    # Let a cancelled generator clean up immediately instead of when it is garbage-collected.
    finally:
        steps.close()
