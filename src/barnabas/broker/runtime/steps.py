"""Long work in steps: short ones on the loop, others between them, and waits for a disk in threads.

A generator yields None where others may have their turn, and a call where the disk has to be
waited for; what the call returns or raises is the outcome of that `yield`. Several calls, which
have no outcome, may be waited for together. So the order of the steps stands in one place, whether
they are run at once or in turns.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Executor
from typing import Any, TypeVar

from barnabas.broker.runtime.disk_threads import in_lane

T = TypeVar("T")

Step = Callable[[], object] | Sequence[Callable[[], None]] | None
Steps = Generator[Step, Any, T]


def at_once(steps: Steps[T]) -> T:
    """Run all of it here and now, the waits for the disk too."""
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


async def in_turns(steps: Steps[T], lane: Executor | None = None) -> T:
    """Run it as the loop has time for it, waiting in a lane. Cancelled, it stops at a `yield`."""
    try:
        step = next(steps)
        while True:
            try:
                outcome = None
                if step is None:
                    await asyncio.sleep(0)
                elif callable(step):
                    outcome = await in_lane(lane, step)
                else:
                    await asyncio.gather(*(in_lane(lane, call) for call in step))
            except OSError as error:
                step = steps.throw(error)
            else:
                step = steps.send(outcome)
    except StopIteration as end:
        result: T = end.value
        return result
    finally:
        steps.close()
