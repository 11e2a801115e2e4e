"""What was received and is not sent yet: bounded, so that senders wait while brokers do not answer.

What has been taken counts until it is `released`. Who can stop its peer (a pipe, TCP) looks at
`is_full` before it reads more, and waits for `room`; who cannot (UDP) drops.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable
from typing import Final

from barnabas.collector.bundle import Bundle

MOST_BYTES: Final = 16 << 20
_TAKEN_BYTES: Final = 4 << 20
_WORTH_SENDING_BYTES: Final = 131_072
_GATHERED_S: Final = 0.005
"""How long the first message waits for others, so that a program that writes line by line does not
have a request for each."""


class Inbox:
    """First in, first out."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self.dropped = 0
        self._most_bytes = most_bytes
        self._held_bytes = 0
        self._waiting: deque[Bundle] = deque()
        self._is_ended = False
        self._news = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()

    @property
    def is_full(self) -> bool:
        return self._held_bytes >= self._most_bytes

    def add(self, bundles: Iterable[Bundle]) -> None:
        """Also beyond the limit: what has been read already has to go somewhere."""
        for bundle in bundles:
            self._waiting.append(bundle)
            self._held_bytes += bundle.held_bytes
        if self._waiting:
            self._news.set()
        if self.is_full:
            self._room.clear()

    async def room(self) -> None:
        """Return once less than half of it is taken, or nobody should receive any more."""
        await self._room.wait()

    async def take(self) -> list[Bundle]:
        """The next messages, some megabytes at most; none once it has ended and is empty."""
        while not self._waiting and not self._is_ended:
            self._news.clear()
            await self._news.wait()
        if self._held_bytes < _WORTH_SENDING_BYTES and not self._is_ended:
            await asyncio.sleep(_GATHERED_S)
        taken: list[Bundle] = []
        size_bytes = 0
        while self._waiting and size_bytes < _TAKEN_BYTES:
            bundle = self._waiting.popleft()
            size_bytes += bundle.held_bytes
            taken.append(bundle)
        return taken

    def released(self, bundles: Iterable[Bundle]) -> None:
        """These are sent."""
        for bundle in bundles:
            self._held_bytes -= bundle.held_bytes
        if self._held_bytes < self._most_bytes // 2:
            self._room.set()

    def end(self) -> None:
        """Nothing more comes."""
        self._is_ended = True
        self._news.set()

    def stop(self) -> None:
        """Wake those that wait for room: they are to end."""
        self._room.set()

    @property
    def count(self) -> int:
        """Of the messages that nobody has taken."""
        return sum(bundle.count for bundle in self._waiting)
