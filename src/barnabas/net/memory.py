"""The memory of requests being received: a limit on all, and reusable buffers.

A connection reserves a large frame whole before it reads on (`queued.max.request.bytes`), so a
frame that has begun can finish: frames cannot wait for memory that the other holds. As in Kafka a
reservation is granted while any memory is left, so one frame may overshoot and no frame can be too
large for an idle broker.

A buffer that was given back is reused when there is no view of it any more; that saves the kernel
from finding, and clearing, sixty-four pages for every wake-up.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

_SPARE_BUFFERS = 4
_LARGEST_SPARE_BYTES = 1280 * 1024  # a batch of a megabyte, and a request's overhead


def has_views(buffer: bytearray) -> bool:
    """Whether a memoryview of a buffer, or of a part of it, is still alive: its length is fixed
    then. Moves nothing: the byte that is taken away comes back into the same place.

    How many references an object has says less: Python counts them differently from 3.14 on.
    """
    try:
        buffer.append(buffer.pop())
    except BufferError:
        return True
    return False


class MemoryPool:
    """Counts reservations; those that do not fit wait, first come first served. Keeps a few
    buffers.

    `size_bytes` -1 is no limit.
    """

    __slots__ = ("_free_bytes", "_is_limited", "_spare", "_waiting")

    def __init__(self, size_bytes: int = -1) -> None:
        self._is_limited = size_bytes >= 0
        self._free_bytes = size_bytes
        self._spare: list[bytearray] = []
        self._waiting: deque[tuple[int, Callable[[], None]]] = deque()

    @property
    def spare_bytes(self) -> int:
        """The size of all buffers that are kept to be used again."""
        return sum(map(len, self._spare))

    def take(self, size_bytes: int) -> bytearray:
        """A buffer of at least that size, with arbitrary content."""
        while self._spare:
            buffer = self._spare.pop()
            if len(buffer) >= size_bytes and not has_views(buffer):
                return buffer
        return bytearray(size_bytes)

    def give(self, buffer: bytearray) -> None:
        """Give a buffer back; existing views of it stay valid."""
        if len(self._spare) < _SPARE_BUFFERS and len(buffer) <= _LARGEST_SPARE_BYTES:
            self._spare.append(buffer)

    def reserve(self, size_bytes: int, granted: Callable[[], None]) -> bool:
        """True: reserved. False: `granted` is called once it is, unless `cancel` comes first."""
        if not self._is_limited:
            return True
        if self._free_bytes > 0 and not self._waiting:
            self._free_bytes -= size_bytes
            return True
        self._waiting.append((size_bytes, granted))
        return False

    async def until_reserved(self, size_bytes: int) -> None:
        """Reserve, after those who wait already."""
        granted: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def grant() -> None:
            if granted.cancelled():
                self.release(size_bytes)
            else:
                granted.set_result(None)

        if self.reserve(size_bytes, grant):
            return
        try:
            await granted
        except asyncio.CancelledError:
            if not self.cancel(grant) and not granted.cancelled():
                self.release(size_bytes)  # granted in the same turn
            raise

    def release(self, size_bytes: int) -> None:
        """Give back a reservation; may call `granted` of waiting ones."""
        if not self._is_limited:
            return
        self._free_bytes += size_bytes
        while self._waiting and self._free_bytes > 0:
            waiting_bytes, granted = self._waiting.popleft()
            self._free_bytes -= waiting_bytes
            granted()

    def cancel(self, granted: Callable[[], None]) -> bool:
        """Drop the waiting reservation with this callback; False if there is none."""
        before = len(self._waiting)
        self._waiting = deque(entry for entry in self._waiting if entry[1] != granted)
        return len(self._waiting) < before
