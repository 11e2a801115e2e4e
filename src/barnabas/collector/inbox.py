"""What was received and is not sent yet: bounded, so that senders wait while brokers do not answer.

What has been taken counts until it is `released`. Who can stop its peer (a pipe, TCP) looks at
`is_full` before it reads more, and waits for `room`; who cannot (UDP) drops.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable
from typing import Final, NamedTuple

from barnabas.records.record import Headers

MOST_BYTES: Final = 16 << 20
_OBJECT_BYTES: Final = 512  # what a message takes besides its text
_TAKEN_BYTES: Final = 4 << 20


class Message(NamedTuple):
    """A line or a message as it was received."""

    key: bytes
    text: bytes
    headers: Headers
    size_bytes: int  # as it came; more than `text` has if that is cut

    @property
    def is_cut(self) -> bool:
        return self.size_bytes > len(self.text)


class Inbox:
    """First in, first out."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self.dropped = 0
        self._most_bytes = most_bytes
        self._held_bytes = 0
        self._waiting: deque[Message] = deque()
        self._is_ended = False
        self._news = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()

    @property
    def is_full(self) -> bool:
        return self._held_bytes >= self._most_bytes

    def add(self, messages: Iterable[Message]) -> None:
        """Also beyond the limit: what has been read already has to go somewhere."""
        for message in messages:
            self._waiting.append(message)
            self._held_bytes += len(message.text) + _OBJECT_BYTES
        if self._waiting:
            self._news.set()
        if self.is_full:
            self._room.clear()

    async def room(self) -> None:
        """Return once less than half of it is taken, or nobody should receive any more."""
        await self._room.wait()

    async def take(self) -> list[Message]:
        """The next messages, some megabytes at most; none once it has ended and is empty."""
        while not self._waiting and not self._is_ended:
            self._news.clear()
            await self._news.wait()
        taken: list[Message] = []
        size_bytes = 0
        while self._waiting and size_bytes < _TAKEN_BYTES:
            message = self._waiting.popleft()
            size_bytes += len(message.text) + _OBJECT_BYTES
            taken.append(message)
        return taken

    def released(self, messages: Iterable[Message]) -> None:
        """These are sent."""
        for message in messages:
            self._held_bytes -= len(message.text) + _OBJECT_BYTES
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
        return len(self._waiting)
