"""Manages the memory that a connection reserves for an incoming frame. The reservation grows with
the number of bytes that the peer has sent. It is released when the frame has been handed over, or
later if the reader still needs the bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct

from barnabas.named_tuple import NamedTuple
from barnabas.net.memory import MemoryPool

_API_KEY = Struct(">h").unpack_from


class Preferred(NamedTuple):
    """Requests for which memory is set aside, so that they need not wait for other requests."""

    api_keys: frozenset[int]
    memory: MemoryPool


class Reservation:
    """Tracks the memory that one connection has reserved in a pool."""

    __slots__ = (
        "_holder",
        "_on_granted",
        "_source",
        "_wanted_bytes",
        "is_kept",
        "pool",
        "preferred",
        "size_bytes",
    )

    def __init__(self, holder: object, pool: MemoryPool, on_granted: Callable[[], None]) -> None:
        self.pool = pool
        self.preferred: Preferred | None = None
        """The memory that is set aside for the frames of certain APIs, or None if there is none."""
        self.size_bytes = 0
        self.is_kept = False
        """Whether the reservation is kept after the frame was handed over, because the reader still
        uses its bytes.
        """
        self._holder = holder
        self._on_granted = on_granted
        self._source = pool  # the pool for the current frame
        self._wanted_bytes = 0  # requested but not granted yet

    @property
    def is_waiting(self) -> bool:
        """Whether reading is paused because there is not enough memory."""
        return self._wanted_bytes > 0

    def grow(self, size_bytes: int, frame: memoryview) -> bool:
        """Reserve memory for a frame that begins with these bytes. Returns False if the frame has
        to wait.
        """
        if size_bytes <= self.size_bytes:
            return True
        if not self.size_bytes:
            self._source = self.pool
            preferred = self.preferred
            # When the first bytes of a frame arrive, choose where its memory comes from. Use the
            # same source for the whole frame.
            if preferred is not None and _API_KEY(frame)[0] in preferred.api_keys:
                self._source = preferred.memory
        self._wanted_bytes = size_bytes - self.size_bytes
        if not self._source.reserve(self._wanted_bytes, self._on_grant, self._holder):
            return False
        self._take()
        return True

    def _on_grant(self) -> None:
        self._take()
        self._on_granted()

    def _take(self) -> None:
        self.size_bytes += self._wanted_bytes
        self._wanted_bytes = 0

    def on_handed_over(self) -> None:
        """Release the memory at the end of the frame, unless the reservation is kept."""
        if not self.is_kept:
            self.free()

    def end(self) -> None:
        """Release the memory for good, without waiting for the garbage collector."""
        self.free()
        self._holder = None
        self._on_granted = _pass

    def free(self) -> None:
        """Release the memory, and stop waiting for more."""
        if self._wanted_bytes:
            self._source.cancel(self._on_grant)
            self._wanted_bytes = 0
        self.is_kept = False
        size, self.size_bytes = self.size_bytes, 0
        if size:
            self._source.release(size, self._holder)


def _pass() -> None:
    pass
