"""Carries SystemExit and its like from a user's code to the caller that runs the event loop."""

from __future__ import annotations

import asyncio
from typing import NoReturn


def raise_on_loop(error: BaseException) -> None:
    """Have the running loop raise `error` in a turn of its own; without a loop, raise it here.

    So what the present turn still has to do is done: other callbacks, other batches of an answer.
    """
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:  # a thread for callbacks
        raise error from None
    loop.call_soon(_raise, error)


def _raise(error: BaseException) -> NoReturn:
    raise error
