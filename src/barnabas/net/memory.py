"""The memory that all requests being received may take together (`queued.max.request.bytes`).

A connection reserves a large frame whole before it reads on, so whoever has begun can finish:
frames that each hold a part of what the other needs cannot come about. As in Kafka a reservation
is granted while any memory is left, so one frame may overshoot and no frame can be too large for
an idle broker.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable


class MemoryPool:
    """Counts reservations; those that do not fit wait their turn, first come first served.

    `size_bytes` -1 is no limit.
    """

    __slots__ = ("_free_bytes", "_is_limited", "_waiting")

    def __init__(self, size_bytes: int = -1) -> None:
        self._is_limited = size_bytes >= 0
        self._free_bytes = size_bytes
        self._waiting: deque[tuple[int, Callable[[], None]]] = deque()

    def reserve(self, size_bytes: int, granted: Callable[[], None]) -> bool:
        """True: reserved. False: `granted` is called when it is, unless `cancel` comes first."""
        if not self._is_limited:
            return True
        if self._free_bytes > 0 and not self._waiting:
            self._free_bytes -= size_bytes
            return True
        self._waiting.append((size_bytes, granted))
        return False

    def release(self, size_bytes: int) -> None:
        """Give back what was reserved; may call somebody's `granted`."""
        if not self._is_limited:
            return
        self._free_bytes += size_bytes
        while self._waiting and self._free_bytes > 0:
            waiting_bytes, granted = self._waiting.popleft()
            self._free_bytes -= waiting_bytes
            granted()

    def cancel(self, granted: Callable[[], None]) -> bool:
        """Whoever waited with this callback waits no longer; False if nobody did."""
        before = len(self._waiting)
        self._waiting = deque(entry for entry in self._waiting if entry[1] != granted)
        return len(self._waiting) < before
