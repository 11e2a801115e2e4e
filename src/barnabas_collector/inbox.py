"""Queues messages until they are sent. A limit makes senders wait while the brokers do not respond.

A message counts towards the limit until `release`, even after it has been taken. A source that can
slow down its sender (a pipe, TCP) checks `is_full` before it reads more, and waits for `room`. A
source that cannot do so (UDP) drops messages.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable
from typing import Final

from barnabas_collector.bundle import Bundle
from barnabas_collector.collector_metrics import CollectorMetrics
from barnabas_collector.redaction import Redact

MOST_BYTES: Final = 16 << 20
_TAKEN_BYTES: Final = 4 << 20
_WORTH_SENDING_BYTES: Final = 131_072
_GATHERED_S: Final = 0.005
"""How long the first message waits for more messages. Without this wait, a program that writes line
by line would cause one request per line."""


class Inbox:
    """Implements a first-in, first-out queue."""

    def __init__(
        self,
        most_bytes: int = MOST_BYTES,
        redact: Redact | None = None,
        metrics: CollectorMetrics | None = None,
    ) -> None:
        """`redact` replaces secrets in messages when they are added."""
        self.dropped = 0
        self._most_bytes = most_bytes
        self._redact = redact
        self._metrics = metrics
        self._held_bytes = 0
        self._waiting: deque[Bundle] = deque()
        self._ended = asyncio.Event()
        self._news = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()

    @property
    def is_full(self) -> bool:
        return self._held_bytes >= self._most_bytes

    def add(self, bundles: Iterable[Bundle]) -> None:
        """Add messages, even if this exceeds the limit. They have already been read and must not be
        lost.
        """
        for each in bundles:
            bundle = each
            if self._redact is not None and each.awaited is None:
                bundle = each.without_secrets(self._redact)
            self._waiting.append(bundle)
            if self._metrics is not None:
                self._metrics.on_read(bundle.count, bundle.came_bytes)
            self._held_bytes += bundle.held_bytes
        if self._waiting:
            self._news.set()
        if self.is_full:
            self._room.clear()

    def drop(self) -> None:
        """Count a message for which the inbox has no room."""
        self.dropped += 1
        if self._metrics is not None:
            self._metrics.lost["dropped"].increment()

    async def room(self) -> None:
        """Wait until the inbox is less than half full, or until the sources should end."""
        await self._room.wait()

    async def take(self) -> list[Bundle]:
        """Take the next messages, up to a few megabytes. Return none if the inbox has ended and is
        empty."""
        while not self._waiting and not self.has_ended:
            self._news.clear()
            await self._news.wait()
        # Let a few messages wait for more, unless the inbox has ended.
        if self._held_bytes < _WORTH_SENDING_BYTES and not self.has_ended:
            await asyncio.sleep(_GATHERED_S)
        taken: list[Bundle] = []
        size_bytes = 0
        while self._waiting and size_bytes < _TAKEN_BYTES:
            bundle = self._waiting.popleft()
            size_bytes += bundle.held_bytes
            taken.append(bundle)
        return taken

    def release(self, bundles: Iterable[Bundle]) -> None:
        """Make room after these messages have been sent."""
        for bundle in bundles:
            self._held_bytes -= bundle.held_bytes
        # Do not wake sources at the first free byte, because they would then stop and resume with
        # each message.
        if self._held_bytes < self._most_bytes // 2:
            self._room.set()

    def end(self) -> None:
        """End the inbox, because no more messages will arrive."""
        self._ended.set()
        self._news.set()

    @property
    def has_ended(self) -> bool:
        return self._ended.is_set()

    async def wait_for_end(self) -> None:
        """Wait until no more messages will arrive."""
        await self._ended.wait()

    def stop(self) -> None:
        """Wake the sources that are waiting for room, so that they end."""
        self._room.set()

    @property
    def count(self) -> int:
        """The number of messages that have not been taken and that their senders no longer have."""
        return sum(bundle.count for bundle in self._waiting if bundle.awaited is None)

    @property
    def is_empty(self) -> bool:
        return not self._waiting
