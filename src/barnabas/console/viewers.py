"""Knows what somebody looks at, since nothing else is looked up often, and wakes those who wait."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from typing import Final

ATTENTION_S: Final = 30.0
_MOST_NAMES: Final = 500


class Viewers:
    """Notes each request of a page, and lets looks wait while nobody asks."""

    def __init__(self) -> None:
        self._asked_at_s = time.monotonic()
        self._asked = asyncio.Event()
        self._viewed: dict[str, float] = {}

    def ask(self) -> None:
        """Note that somebody has asked for something."""
        self._asked_at_s = time.monotonic()
        self._asked.set()

    def view(self, names: Iterable[str]) -> None:
        """Note that these topics or groups are on a page; prefixes keep the two kinds apart."""
        now_s = time.monotonic()
        for name in names:
            self._viewed.pop(name, None)  # the last viewed is the last to be forgotten
            self._viewed[name] = now_s
        while len(self._viewed) > _MOST_NAMES:
            del self._viewed[next(iter(self._viewed))]

    def on_view(self, prefix: str) -> list[str]:
        """Return the names with this prefix that were on a page lately, without the prefix."""
        since_s = time.monotonic() - ATTENTION_S
        return [
            name.removeprefix(prefix)
            for name, at_s in self._viewed.items()
            if at_s >= since_s and name.startswith(prefix)
        ]

    async def wait(self) -> None:
        """Return at once if somebody has asked lately, otherwise with the next request."""
        while time.monotonic() - self._asked_at_s > ATTENTION_S:
            self._asked.clear()
            await self._asked.wait()


class News:
    """An event that happens repeatedly; whoever waits gets the next one."""

    def __init__(self) -> None:
        self._next = asyncio.Event()

    def notify(self) -> None:
        """Wake everyone who waits."""
        current, self._next = self._next, asyncio.Event()
        current.set()

    async def wait(self, seconds: float) -> bool:
        """Return True as soon as there is news, or False after this time."""
        try:
            async with asyncio.timeout(seconds):
                await self._next.wait()
        except TimeoutError:
            return False
        return True
