"""Passes SystemExit and the like from user code to whoever runs the event loop."""

from __future__ import annotations

import asyncio
from typing import NoReturn


def raise_on_loop(error: BaseException) -> None:
    """Make the running loop raise `error` in a separate turn; without a loop, raise it directly.

    This lets the current turn finish its work, such as a response's other callbacks and batches.
    """
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:  # a thread for callbacks
        raise error from None
    loop.call_soon(_raise, error)


def _raise(error: BaseException) -> NoReturn:
    raise error
