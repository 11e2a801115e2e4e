"""Limits the total memory of requests being received, and reuses their buffers.

A connection reserves memory for the next part of a large frame before it continues reading, so
bytes that a peer announces but does not send cost nothing (`queued.max.request.bytes`). As in
Kafka, a reservation is granted while any memory is left, so one reservation may exceed the limit.
The earliest holder never waits; otherwise, frames could wait for one another's memory. Therefore,
no frame is too large for an idle broker, and every frame completes.

A returned buffer is reused once no view of it exists. Otherwise, the kernel would have to find and
clear 64 pages for every wake-up.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from barnabas.named_tuple import NamedTuple

_SPARE_BUFFERS = 4
_LARGEST_SPARE_BYTES = 1280 * 1024  # a one-megabyte batch and a request's overhead


def has_views(buffer: bytearray) -> bool:
    """Return whether a memoryview of the buffer or of a part still exists, fixing its length.

    Nothing is moved: the byte that is removed returns to the same place. The object's reference
    count is less reliable, because Python counts references differently from 3.14 on.
    """
    try:
        buffer.append(buffer.pop())
    except BufferError:
        return True
    return False


class _Waiting(NamedTuple):
    """A waiting reservation."""

    size_bytes: int
    granted: Callable[[], None]
    holder: object


class MemoryPool:
    """A pool that counts memory reservations and queues those that do not fit, in order.

    It also keeps a few spare buffers. With a `size_bytes` of -1, there is no limit.
    """

    __slots__ = ("_free_bytes", "_holders", "_is_limited", "_spare", "_waiting", "when_short")

    def __init__(self, size_bytes: int = -1) -> None:
        self._is_limited = size_bytes >= 0
        self._free_bytes = size_bytes
        self._spare: list[bytearray] = []
        self._waiting: deque[_Waiting] = deque()
        self._holders: dict[object, int] = {}  # reserved bytes by holder, in order of first use
        self.when_short: Callable[[], None] | None = None
        """Called whenever a reservation has to wait."""

    @property
    def is_short(self) -> bool:
        """Whether any reservation is waiting."""
        return bool(self._waiting)

    @property
    def holders(self) -> tuple[object, ...]:
        """The holders of reservations that may grow, in order of their first reservation."""
        return tuple(self._holders)

    @property
    def spare_bytes(self) -> int:
        """The total size of buffers kept for reuse."""
        return sum(map(len, self._spare))

    def take(self, size_bytes: int) -> bytearray:
        """Take a buffer of at least that size, with arbitrary content."""
        while self._spare:
            buffer = self._spare.pop()
            if len(buffer) >= size_bytes and not has_views(buffer):
                return buffer
        return bytearray(size_bytes)

    def give(self, buffer: bytearray) -> None:
        """Return a buffer; existing views of it stay valid."""
        if len(self._spare) < _SPARE_BUFFERS and len(buffer) <= _LARGEST_SPARE_BYTES:
            self._spare.append(buffer)

    def reserve(self, size_bytes: int, granted: Callable[[], None], holder: object = None) -> bool:
        """Reserve memory.

        If this returns False, `granted` is called later, unless `cancel` is called first.

        A `holder` has other reservations, or will have some, and gives all of them back together.
        """
        if not self._is_limited:
            return True
        request = _Waiting(size_bytes, granted, holder)
        # As in Kafka, any remaining memory suffices, but a later reservation does not overtake
        # those that are waiting.
        if (self._free_bytes > 0 and not self._waiting) or self._never_waits(request):
            self._take(request)
            return True
        self._waiting.append(request)
        if self.when_short is not None:
            self.when_short()
        return False

    def _never_waits(self, request: _Waiting) -> bool:
        return request.holder is not None and request.holder is next(
            iter(self._holders), request.holder
        )

    def _take(self, request: _Waiting) -> None:
        self._free_bytes -= request.size_bytes
        if request.holder is not None:
            held = self._holders.get(request.holder, 0)
            self._holders[request.holder] = held + request.size_bytes

    async def until_reserved(self, size_bytes: int) -> None:
        """Wait until memory is reserved, after the reservations that are already waiting."""
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
                self.release(size_bytes)  # the reservation was granted in the same turn
            raise

    def release(self, size_bytes: int, holder: object = None) -> None:
        """Give back a reservation, or all of a holder's; this may grant waiting reservations."""
        if not self._is_limited:
            return
        self._free_bytes += size_bytes
        self._holders.pop(holder, None)
        while self._waiting:
            if self._free_bytes > 0:
                request = self._waiting.popleft()
            else:
                # Nothing is left, but the earliest holder must finish; otherwise, all would wait
                # for it.
                first = next(filter(self._never_waits, self._waiting), None)
                if first is None:
                    break
                request = first
                self._waiting.remove(request)
            self._take(request)
            request.granted()

    def cancel(self, granted: Callable[[], None]) -> bool:
        """Drop any waiting reservation with this callback, and return whether there was one."""
        before = len(self._waiting)
        self._waiting = deque(each for each in self._waiting if each.granted != granted)
        return len(self._waiting) < before
