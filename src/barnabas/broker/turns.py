"""Long work in steps: short ones on the loop, others between them, and waits for a disk in threads.

A generator yields None where others may have their turn, and a call where the disk has to be
waited for; what the call raises is raised at that `yield`. So the order of the steps stands in one
place, whether they are run at once or in turns.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from typing import TypeVar

T = TypeVar("T")

Step = Callable[[], object] | None
Steps = Generator[Step, None, T]


def at_once(steps: Steps[T]) -> T:
    """Run all of it here and now, the waits for the disk too."""
    try:
        step = next(steps)
        while True:
            try:
                if step is not None:
                    step()
            except OSError as error:
                step = steps.throw(error)
            else:
                step = next(steps)
    except StopIteration as end:
        result: T = end.value
        return result


async def in_turns(steps: Steps[T]) -> T:
    """Run it as the loop has time for it. Cancelled, it stops at a `yield`."""
    loop = asyncio.get_running_loop()
    try:
        step = next(steps)
        while True:
            try:
                if step is None:
                    await asyncio.sleep(0)
                else:
                    await loop.run_in_executor(None, step)
            except OSError as error:
                step = steps.throw(error)
            else:
                step = next(steps)
    except StopIteration as end:
        result: T = end.value
        return result
    finally:
        steps.close()
