"""Runs long work in steps, either without a pause or interleaved with other tasks.

A generator yields None where other tasks can run, and a call where it needs the disk; the call's
result or exception is the outcome of that `yield`. It can also yield several calls together, but
gets no outcome for these.
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
    """Run all steps without a pause, waiting for the disk."""
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
    """Run the steps on the loop, between other tasks, with disk calls in the pool's threads.

    If cancelled, the generator stops at a `yield`.
    """
    try:
        step = next(steps)
        while True:
            try:
                outcome = None
                # Just let other tasks run.
                if step is None:
                    await asyncio.sleep(0)
                # A single call: send its outcome to the generator.
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
    # Let a cancelled generator clean up immediately, not when it is garbage-collected.
    finally:
        steps.close()
