"""Waiting for room in `buffer.memory`, first come, first served."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from barnabas.client.errors import BufferFull
from barnabas.client.producer.accumulator import Accumulator


class BufferMemory:
    """Grants room in `buffer.memory` to one record at a time; hold `line` to be the next.

    Without the line a small record could slip in front of a large one again and again.
    """

    def __init__(
        self, accumulator: Accumulator, wake: Callable[[], None], check: Callable[[], None]
    ) -> None:
        self._accumulator = accumulator
        self._wake_sender = wake
        self._check = check  # raises when nothing may be sent any more
        self._changed = asyncio.Event()
        self.line = asyncio.Lock()

    def on_change(self) -> None:
        """Look again: a batch has its outcome, or nothing is sent any more."""
        self._changed.set()

    async def wait(self, size_bytes: int) -> None:
        """Return once there is room for that much, in `line`. No batch lingers meanwhile."""
        if self._accumulator.has_room(size_bytes):
            return
        self._accumulator.flushing += 1
        try:
            while not self._accumulator.has_room(size_bytes):
                # Full, a batch leaves at once whatever its linger.ms: see `Accumulator.ready`.
                self._changed.clear()
                self._wake_sender()
                await self._changed.wait()
                self._check()
        finally:
            self._accumulator.flushing -= 1

    def full(self, topic: str, limit_ms: int) -> BufferFull:
        """The error of a record that got none in that time."""
        return BufferFull(
            f"no room for a record for {topic} within {limit_ms} ms (max.block.ms): "
            f"{self._accumulator.used_bytes} bytes are waiting for brokers (buffer.memory)"
        )
