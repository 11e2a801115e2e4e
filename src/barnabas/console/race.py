"""Runs several tasks until the first one finishes."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any


async def race(*works: Coroutine[Any, Any, Any]) -> None:
    """Run all coroutines concurrently until one finishes, then cancel the others and wait for them.
    If the first one raised an error, this function raises it. Errors that the others raise during
    cancellation are ignored.
    """
    ended: asyncio.Future[asyncio.Task[Any]] = asyncio.get_running_loop().create_future()

    def end(task: asyncio.Task[Any]) -> None:
        if not ended.done():
            ended.set_result(task)

    tasks = [asyncio.create_task(work) for work in works]
    for task in tasks:
        task.add_done_callback(end)
    try:
        first = await ended
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    first.result()
