"""Spreads bursts of work over turns of the loop, a few milliseconds in each.

A handshake takes a millisecond of arithmetic. If a thousand clients connected at the same moment,
serving each as soon as it is readable would delay all other clients for a second.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

_TURN_S = 0.002


class Turns:
    """Runs steps in order of arrival, on the loop that is running at the first `add`."""

    __slots__ = ("_due", "_is_scheduled")

    def __init__(self) -> None:
        self._due: deque[Callable[[], None]] = deque()
        self._is_scheduled = False

    def __len__(self) -> int:
        return len(self._due)

    def add(self, step: Callable[[], None]) -> None:
        """Run the step from the loop, after the steps already waiting."""
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
            # Continue even if a step has raised an error; the others must not wait forever.
            self._is_scheduled = bool(self._due)
            if self._due:
                loop.call_soon(self._run)
