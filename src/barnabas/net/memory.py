"""Limits the total memory of the requests that are being received, and reuses their buffers.

A connection reserves memory for the next part of a large frame before it reads on. Bytes that a
peer has announced but not sent therefore cost nothing (`queued.max.request.bytes`). As in Kafka, a
reservation is granted if any memory is left, so a single reservation may exceed the limit. The
holder with the earliest reservation never has to wait. Otherwise, frames could wait for each
other's memory. Thus no frame is too large for an idle broker, and every frame is received
completely in the end.

A returned buffer is reused when there are no more views of it. Without this, the kernel would have
to find and clear 64 pages for each wake-up.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from barnabas.named_tuple import NamedTuple

_SPARE_BUFFERS = 4
_LARGEST_SPARE_BYTES = 1280 * 1024  # for a batch of one megabyte and the rest of its request


def has_views(buffer: bytearray) -> bool:
    """Return whether there is still a memoryview of the buffer or of a part of it. Such a view
    prevents resizing.

    No data is moved, because the byte that is removed is put back in the same place. The reference
    count of the buffer would be less reliable, because Python 3.14 and later count references
    differently.
    """
    try:
        buffer.append(buffer.pop())
    except BufferError:
        return True
    return False


class _Waiting(NamedTuple):
    """A reservation that has not been granted yet."""

    size_bytes: int
    granted: Callable[[], None]
    holder: object


class MemoryPool:
    """Counts reservations of memory, and queues those that do not fit, in the order of their
    arrival.

    The pool also keeps a few spare buffers. If `size_bytes` is -1, there is no limit.
    """

    __slots__ = ("_free_bytes", "_holders", "_is_limited", "_spare", "_waiting", "when_short")

    def __init__(self, size_bytes: int = -1) -> None:
        self._is_limited = size_bytes >= 0
        self._free_bytes = size_bytes
        self._spare: list[bytearray] = []
        self._waiting: deque[_Waiting] = deque()
        self._holders: dict[object, int] = {}  # reserved bytes by holder, in order of first use
        self.when_short: Callable[[], None] | None = None
        """Called each time a reservation has to wait."""

    @property
    def is_short(self) -> bool:
        """Whether there is a reservation that has to wait."""
        return bool(self._waiting)

    @property
    def holders(self) -> tuple[object, ...]:
        """Holders whose reservations may grow, sorted by the time of their first reservation."""
        return tuple(self._holders)

    @property
    def spare_bytes(self) -> int:
        """The total size of the buffers that are kept for reuse."""
        return sum(map(len, self._spare))

    def take(self, size_bytes: int) -> bytearray:
        """Return a buffer that has at least this size. Its content is arbitrary."""
        while self._spare:
            buffer = self._spare.pop()
            if len(buffer) >= size_bytes and not has_views(buffer):
                return buffer
        return bytearray(size_bytes)

    def give(self, buffer: bytearray) -> None:
        """Give back a buffer. Any views of it stay valid."""
        if len(self._spare) < _SPARE_BUFFERS and len(buffer) <= _LARGEST_SPARE_BYTES:
            self._spare.append(buffer)

    def reserve(self, size_bytes: int, granted: Callable[[], None], holder: object = None) -> bool:
        """Reserve memory.

        If this returns False, the reservation has to wait, and `granted` is called later unless
        `cancel` is called before.

        A `holder` may make several reservations, and gives back all of them at the same time.
        """
        if not self._is_limited:
            return True
        request = _Waiting(size_bytes, granted, holder)
        # As in Kafka, it is enough if any memory is left. However, a reservation must not overtake
        # others that are already waiting.
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
        """Wait until the memory is reserved. Reservations that are already waiting are granted
        first.
        """
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
        """Give back one reservation or all reservations of a holder. After that, waiting
        reservations may be granted.
        """
        if not self._is_limited:
            return
        self._free_bytes += size_bytes
        self._holders.pop(holder, None)
        while self._waiting:
            if self._free_bytes > 0:
                request = self._waiting.popleft()
            else:
                # No memory is left, but the earliest holder must be able to finish. Otherwise, all
                # others would wait for it indefinitely.
                first = next(filter(self._never_waits, self._waiting), None)
                if first is None:
                    break
                request = first
                self._waiting.remove(request)
            self._take(request)
            request.granted()

    def cancel(self, granted: Callable[[], None]) -> bool:
        """Drop the waiting reservation that has this callback, and return whether there was one."""
        before = len(self._waiting)
        self._waiting = deque(each for each in self._waiting if each.granted != granted)
        return len(self._waiting) < before
