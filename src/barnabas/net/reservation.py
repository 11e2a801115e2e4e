"""The memory that a connection has reserved for the frame that it is receiving.

It grows with the bytes that the peer has sent. It is given back when the frame was handed over, or
later if the reader still needs its bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct

from barnabas.named_tuple import NamedTuple
from barnabas.net.memory import MemoryPool

_API_KEY = Struct(">h").unpack_from


class Preferred(NamedTuple):
    """The requests with separate memory, so that they do not wait behind others."""

    api_keys: frozenset[int]
    memory: MemoryPool


class Reservation:
    """One connection's part of a pool."""

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
        """The reservation outlives its frame: the reader still has its bytes and takes no other
        frame.
        """
        self._holder = holder
        self._on_granted = on_granted
        self._source = pool  # of this frame's
        self._wanted_bytes = 0  # and not granted yet

    @property
    def is_waiting(self) -> bool:
        """True if reading has paused until memory is available."""
        return self._wanted_bytes > 0

    def grow(self, size_bytes: int, frame: memoryview) -> bool:
        """Reserve memory for a frame that begins like this, and return False if it has to wait for
        it.
        """
        if size_bytes <= self.size_bytes:
            return True
        if not self.size_bytes:
            self._source = self.pool
            preferred = self.preferred
            # Choose the source with the first bytes of a frame, and keep it for the rest.
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
        """Give everything back at the end of the frame, unless it is kept."""
        if not self.is_kept:
            self.free()

    def end(self) -> None:
        """Give everything back for good, without waiting for the garbage collector."""
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
