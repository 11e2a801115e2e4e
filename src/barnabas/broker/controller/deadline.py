"""Limits how long a client waits for the controller.

When a client times out or disconnects, the work itself continues, so that no topic is left half
created.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from barnabas.errors import RequestTimedOut
from barnabas.shielded import retrieve_error, shielded

T = TypeVar("T")

_UNTIL_REFUSED_MS = 5000


async def within(timeout_ms: int, work: Coroutine[Any, Any, T]) -> T:
    """Return the result of `work`, or raise its error. Raises RequestTimedOut if the work takes too
    long.

    Even if its timeout is 0, a client receives any error that is detected immediately.
    """
    task = asyncio.get_running_loop().create_task(work)
    task.add_done_callback(retrieve_error)
    waits_ms = timeout_ms if timeout_ms > 0 else _UNTIL_REFUSED_MS
    try:
        # Do not use `wait_for`, because its error and its frame would reference each other. Only
        # the garbage collector could free this cycle, which would keep the whole request alive.
        async with asyncio.timeout(waits_ms / 1000):
            return await shielded(task)
    except TimeoutError:
        raise RequestTimedOut(
            f"not completed within {waits_ms} ms; it continues in the background, so check the "
            "result before you retry"
        ) from None
