"""Spreads a burst of work over several iterations of the event loop, a few milliseconds in each.

The arithmetic of a handshake takes a millisecond. If a thousand clients connected at the same time
and each one were served as soon as its socket is readable, all other clients would have to wait for
a second.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

_TURN_S = 0.002


class Turns:
    """Runs steps in the order of their arrival, on the event loop that is running when `add` is
    first called.
    """

    __slots__ = ("_due", "_is_scheduled")

    def __init__(self) -> None:
        self._due: deque[Callable[[], None]] = deque()
        self._is_scheduled = False

    def __len__(self) -> int:
        return len(self._due)

    def add(self, step: Callable[[], None]) -> None:
        """Let the event loop run the step after all steps that are already waiting."""
        self._due.append(step)
        if not self._is_scheduled:
            self._is_scheduled = True
            asyncio.get_running_loop().call_soon(self._run)

    def _run(self) -> None:
        loop = asyncio.get_running_loop()
        end = loop.time() + _TURN_S
        try:
            while self._due:
                self._due.popleft()()
                if loop.time() >= end:
                    break
        finally:
            # Continue even if a step has raised an exception, because the other steps must not wait
            # forever.
            self._is_scheduled = bool(self._due)
            if self._due:
                loop.call_soon(self._run)
