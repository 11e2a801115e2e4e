"""Passes SystemExit and similar exceptions from user code to the caller running the event loop."""

from __future__ import annotations

import asyncio
from typing import NoReturn


def raise_on_loop(error: BaseException) -> None:
    """Let the running loop raise `error` in a turn of its own. Without a loop, raise it directly.

    The current turn can then finish its work, such as the remaining callbacks and batches of a
    response.
    """
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:  # this is a callback thread
        raise error from None
    loop.call_soon(_raise, error)


def _raise(error: BaseException) -> NoReturn:
    raise error
