"""The buffers into which a leader's answers are received: as large as its largest, used in turn.

One answer is on its way at a time, and its records are views of the buffer until they are written;
meanwhile the loop may ask for the next buffer. So two are enough, they serve for good, and an
answer arrives where it stays: no buffer has to grow under it, and the kernel need not clear a
fresh page for each page of records.
"""

from __future__ import annotations

from barnabas.net.memory import MemoryPool, has_views

_BUFFERS = 2
_ROOM_BYTES = 4096
"""More than was asked for: a read that does not fill its buffer is known to be the last one."""


class ReceiveMemory(MemoryPool):
    """For one connection; knows no limit, since the fetch has one."""

    __slots__ = ("_buffers", "_largest_bytes")

    def __init__(self) -> None:
        super().__init__()
        self._buffers: list[bytearray] = []
        self._largest_bytes = 0

    def take(self, size_bytes: int) -> bytearray:
        """One without views on it, at least as large as any that was asked for."""
        if size_bytes > self._largest_bytes:
            self._largest_bytes = size_bytes + _ROOM_BYTES
            self._buffers.clear()
        for buffer in self._buffers:
            if not has_views(buffer):
                return buffer
        buffer = bytearray(self._largest_bytes)
        if len(self._buffers) < _BUFFERS:
            self._buffers.append(buffer)
        return buffer

    def give(self, buffer: bytearray) -> None:
        """They are distinguished by the views on them, so there is nothing to do."""
