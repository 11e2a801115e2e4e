"""Implements asyncio's transport over one end of a simulated connection, like asyncio's own for
sockets.

Every call of the protocol is made in the context in which the connection was made. No call is
therefore made after its process was killed, and after a pause all calls are late.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextvars import Context
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from collections.abc import Callable

    from simulation.whole.loop import VirtualLoop
    from simulation.whole.sockets import End

_HIGH_WATER_BYTES = 64 * 1024


class SimTransport(asyncio.Transport):
    """Owns its end from `begin` until the connection is lost."""

    def __init__(
        self, loop: VirtualLoop, end: End, protocol: asyncio.BaseProtocol, context: Context
    ) -> None:
        super().__init__()
        assert end.peer is not None
        self._loop = loop
        self._end = end
        self._protocol = cast(asyncio.BufferedProtocol, protocol)
        self._context = context
        self._names: dict[str, Any] = {"sockname": end.address, "peername": end.peer.address}
        self._unsent: deque[bytes] = deque()
        self._unsent_bytes = 0
        self._high, self._low = _HIGH_WATER_BYTES, _HIGH_WATER_BYTES // 4
        self._writing_is_paused = False
        self._reading_is_paused = False
        self._is_reading_due = False
        self._is_writing_due = False
        self._is_closing = False
        self._is_lost = False

    def begin(self) -> None:
        """Call the protocol with this transport, then with what arrives."""
        self._end.on_readable = self._readable
        self._end.on_room = self._room
        self._end.holds = self.get_write_buffer_size
        self._protocol.connection_made(self)
        if self._end.is_readable:
            self._readable()

    # ---- what it is ----

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._names.get(name, default)

    def get_protocol(self) -> asyncio.BaseProtocol:
        return self._protocol

    def is_closing(self) -> bool:
        return self._is_closing

    def held_by_peer(self) -> int:
        """Return how many bytes the process at the other end has written but could not send."""
        peer = self._end.peer
        return 0 if peer is None or peer.holds is None else peer.holds()

    # ---- reading ----

    def is_reading(self) -> bool:
        return not self._reading_is_paused and not self._is_closing

    def pause_reading(self) -> None:
        if not self._is_closing:
            self._reading_is_paused = True

    def resume_reading(self) -> None:
        if self._is_closing or not self._reading_is_paused:
            return
        self._reading_is_paused = False
        if self._end.is_readable:
            self._readable()

    def _readable(self) -> None:
        if self._is_closing and self._end.error is not None:
            self._lose(None)  # unsent bytes will never leave
        if not (self._is_reading_due or self._reading_is_paused or self._is_closing):
            self._is_reading_due = True
            self._soon(self._read)

    def _read(self) -> None:
        self._is_reading_due = False
        end = self._end
        if self._reading_is_paused or self._is_closing:
            return
        if end.error is not None:
            self._lose(end.error)
        elif end.has_received:
            buffer: Any = self._protocol.get_buffer(-1)
            self._protocol.buffer_updated(end.read_into(buffer))
            if end.is_readable:
                self._readable()
        elif end.has_ended:
            self._protocol.get_buffer(-1)  # asyncio reads the end into one
            if not self._protocol.eof_received():
                self.close()

    # ---- writing ----

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        if high is None:
            high = _HIGH_WATER_BYTES if low is None else 4 * low
        self._high, self._low = high, high // 4 if low is None else low

    def get_write_buffer_size(self) -> int:
        return self._unsent_bytes

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self._is_lost or not data:
            return
        if self._end.error is not None:
            self._lose(self._end.error)
            return
        data = bytes(data)  # a copy, as in the kernel: the writer may change the original
        if not self._unsent:
            room = self._end.room()
            if room >= len(data):
                self._end.send(data)
                return
            if room:
                self._end.send(data[:room])
                data = data[room:]
        self._unsent.append(data)
        self._unsent_bytes += len(data)
        if self._unsent_bytes > self._high and not self._writing_is_paused:
            self._writing_is_paused = True
            self._protocol.pause_writing()

    def can_write_eof(self) -> bool:
        return False

    def _room(self) -> None:
        if self._unsent and not self._is_writing_due:
            self._is_writing_due = True
            self._soon(self._write_on)

    def _write_on(self) -> None:
        self._is_writing_due = False
        if self._is_lost:
            return
        if self._end.error is not None:
            self._lose(self._end.error)
            return
        unsent = self._unsent
        while unsent and (room := self._end.room()):
            data = unsent.popleft()
            if len(data) > room:
                unsent.appendleft(data[room:])
                data = data[:room]
            self._unsent_bytes -= len(data)
            self._end.send(data)
        if self._writing_is_paused and self._unsent_bytes <= self._low:
            self._writing_is_paused = False
            self._protocol.resume_writing()
        if self._is_closing and not unsent:
            self._lose(None)

    # ---- the end ----

    def close(self) -> None:
        if self._is_closing:
            return
        self._is_closing = True
        if not self._unsent:
            self._lose(None)

    def abort(self) -> None:
        self._lose(None)

    def _lose(self, error: OSError | None) -> None:
        if self._is_lost:
            return
        self._is_lost = self._is_closing = True
        self._unsent.clear()
        self._unsent_bytes = 0
        self._soon(self._lost, error)

    def _lost(self, error: OSError | None) -> None:
        try:
            self._protocol.connection_lost(error)
        finally:
            self._end.close()

    def _soon(self, action: Callable[..., None], *values: object) -> None:
        self._loop.call_soon(action, *values, context=self._context)
