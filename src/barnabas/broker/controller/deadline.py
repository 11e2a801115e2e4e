"""The time limit of a client that waits for the controller.

The work itself continues when the time is over or the client disconnects: a timeout must not leave
half a topic.
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
    """Return or raise what `work` does. Raises RequestTimedOut if that takes longer.

    A client that gives no time still gets a refusal, which is known after a moment.
    """
    task = asyncio.get_running_loop().create_task(work)
    task.add_done_callback(retrieve_error)
    waits_ms = timeout_ms if timeout_ms > 0 else _UNTIL_REFUSED_MS
    try:
        # Not `wait_for`: an error would hold its frame, and that frame the future with the error.
        # Only the cycle collector frees this garbage, with the whole request in it.
        async with asyncio.timeout(waits_ms / 1000):
            return await shielded(task)
    except TimeoutError:
        raise RequestTimedOut(
            f"not completed within {waits_ms} ms; it continues in the background, so check the "
            "result before you retry"
        ) from None
