"""Work that connections ask for in bursts, a few milliseconds of it in each turn of the loop.

A handshake takes a millisecond of arithmetic. A thousand clients that connect at the same moment
would hold up all others for a second, if each were served as soon as it can be read.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

_TURN_S = 0.002


class Turns:
    """Runs steps in the order in which they came, on the loop that runs when the first is added."""

    __slots__ = ("_due", "_is_scheduled")

    def __init__(self) -> None:
        self._due: deque[Callable[[], None]] = deque()
        self._is_scheduled = False

    def __len__(self) -> int:
        return len(self._due)

    def add(self, step: Callable[[], None]) -> None:
        """Run it after those that wait, from the loop."""
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
            # Also after a step that has raised: the others must not wait for good.
            self._is_scheduled = bool(self._due)
            if self._due:
                loop.call_soon(self._run)
