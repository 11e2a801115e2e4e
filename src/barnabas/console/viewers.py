"""Tracks what is on view, because anything else is polled less often, and wakes the tasks that wait
for a view.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from typing import Final

ATTENTION_S: Final = 30.0
_MOST_NAMES: Final = 500


class Viewers:
    """Records page requests. Polling is suspended while there are no requests."""

    def __init__(self) -> None:
        self._asked_at_s = time.monotonic()
        self._asked = asyncio.Event()
        self._viewed: dict[str, float] = {}
        self._views = News()

    def ask(self) -> None:
        """Record that somebody has requested something."""
        self._asked_at_s = time.monotonic()
        self._asked.set()

    def view(self, names: Iterable[str]) -> None:
        """Record that these topics or groups are on view. Prefixes distinguish the two kinds."""
        now_s = time.monotonic()
        for name in names:
            self._viewed.pop(name, None)  # the most recently viewed name is dropped last
            self._viewed[name] = now_s
        while len(self._viewed) > _MOST_NAMES:
            del self._viewed[next(iter(self._viewed))]
        self._views.notify()

    def on_view(self, prefix: str) -> list[str]:
        """Return the recently viewed names with this prefix, without the prefix."""
        since_s = time.monotonic() - ATTENTION_S
        return [
            name.removeprefix(prefix)
            for name, at_s in self._viewed.items()
            if at_s >= since_s and name.startswith(prefix)
        ]

    async def wait(self) -> None:
        """Return immediately if there was a recent request; otherwise, wait for the
        next request.
        """
        while time.monotonic() - self._asked_at_s > ATTENTION_S:
            self._asked.clear()
            await self._asked.wait()

    async def wait_for(self, prefix: str) -> None:
        """Return immediately if a name with this prefix was viewed recently; otherwise, wait until
        one is viewed."""
        while not self.on_view(prefix):
            await self._views.wait(ATTENTION_S)


class News:
    """A recurring event. Waiting tasks are woken by its next occurrence."""

    def __init__(self) -> None:
        self._next = asyncio.Event()

    def notify(self) -> None:
        """Wake all waiting tasks."""
        current, self._next = self._next, asyncio.Event()
        current.set()

    async def wait(self, seconds: float) -> bool:
        """Return True as soon as the event occurs, or False at the timeout."""
        try:
            async with asyncio.timeout(seconds):
                await self._next.wait()
        except TimeoutError:
            return False
        return True
