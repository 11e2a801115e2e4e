"""Manages a connection's memory reservation for an incoming frame. The reservation grows with the
bytes sent by the peer. It is released when the frame has been handed over, or later if the reader
needs the bytes for longer.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct

from barnabas.named_tuple import NamedTuple
from barnabas.net.memory import MemoryPool

_API_KEY = Struct(">h").unpack_from


class Preferred(NamedTuple):
    """Requests with separate memory, which do not wait behind others."""

    api_keys: frozenset[int]
    memory: MemoryPool


class Reservation:
    """The part of a pool that one connection has reserved."""

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
        """Memory for frames of some APIs; None if there is no such API."""
        self.size_bytes = 0
        self.is_kept = False
        """Whether the reservation outlives its frame, because the reader still uses the bytes."""
        self._holder = holder
        self._on_granted = on_granted
        self._source = pool  # the pool for the current frame
        self._wanted_bytes = 0  # requested but not granted yet

    @property
    def is_waiting(self) -> bool:
        """Whether reading is paused until memory is available."""
        return self._wanted_bytes > 0

    def grow(self, size_bytes: int, frame: memoryview) -> bool:
        """Reserve memory for a frame with this beginning, and return False if it has to wait."""
        if size_bytes <= self.size_bytes:
            return True
        if not self.size_bytes:
            self._source = self.pool
            preferred = self.preferred
            # Choose the source when the first bytes of a frame arrive, and keep it for the rest.
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
        """Give everything back at the end of the frame, unless the reservation is kept."""
        if not self.is_kept:
            self.free()

    def end(self) -> None:
        """Give everything back permanently, without waiting for the garbage collector."""
        self.free()
        self._holder = None
        self._on_granted = _pass

    def free(self) -> None:
        """Give everything back, and stop waiting."""
        if self._wanted_bytes:
            self._source.cancel(self._on_grant)
            self._wanted_bytes = 0
        self.is_kept = False
        size, self.size_bytes = self.size_bytes, 0
        if size:
            self._source.release(size, self._holder)


def _pass() -> None:
    pass
