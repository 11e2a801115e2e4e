"""Implements a TCP connection that receives frames and sends parts. It is used by clients and
brokers.

    socket --recv_into--> buffer --+-- 4-byte length | frame --> reader.frame_received
    socket <--write / sendfile-- send queue <-- write([bytes, FileSlice, ...])

The connection owns the receive buffer, and `send_queue` owns the data to be sent. The memory of a
frame belongs to the reader and is writable. The connection never writes to it again, so the reader
may keep views of it. Each view keeps the whole buffer alive, so a small part that is needed for a
long time should be copied. An idle connection has no buffer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from struct import Struct
from typing import Protocol, cast

from barnabas.errors import CorruptData
from barnabas.net.foreign_bytes import protocol_of, refusal
from barnabas.net.memory import MemoryPool
from barnabas.net.reservation import Reservation
from barnabas.net.send_queue import SendQueue
from barnabas.types import Part

_LENGTH = Struct(">i")
# a smaller buffer reduces the throughput of 16 KiB frames; a larger one has no advantage
_BUFFER_BYTES = 256 * 1024
_SMALL_BYTES = 16 * 1024  # longer parts of incomplete frames are not moved
_FRAMES_PER_TURN = 256  # frames per connection before others get a turn
_TURN_S = 0.003  # seconds per connection, if this limit is reached first
_FRAMES_PER_LOOK = 8  # frames between checks of the time; each takes at most two milliseconds
# with more bytes received while frames are held back, the socket is not read
_HELD_BYTES = 64 * 1024

Address = tuple[str, int]


class Reader(Protocol):
    """Receives the frames of a connection."""

    def connection_opened(self, connection: Connection) -> None:
        """Called when both addresses are known and before any data is read."""
        ...

    def frame_received(self, connection: Connection, frame: memoryview) -> None:
        """Process a frame. The length that precedes it is not included."""
        ...

    def wake_ended(self, connection: Connection) -> None:
        """Called after the last frame of a wake-up and before the responses are sent. Work that is
        needed only once per wake-up can be done here.
        """
        ...

    def connection_closed(self, connection: Connection, error: Exception | None) -> None:
        """Called exactly once, when the connection has been closed."""
        ...


class Connection(asyncio.BufferedProtocol):
    """A TCP connection. It is also the transport seam, so the simulator's network has the same
    methods. With `pause_when_blocked`, no frames are read while the peer is not reading responses.
    This is for servers only, because a client and a server that both did this would deadlock.
    """

    def __init__(
        self,
        reader: Reader,
        *,
        max_frame_bytes: int,
        memory: MemoryPool | None = None,
        pause_when_blocked: bool = False,
        buffer_bytes: int = _BUFFER_BYTES,
    ) -> None:
        """Create the connection. Its receive buffer has `buffer_bytes`; memory must be reserved for
        longer frames.
        """
        self._reader: Reader | None = reader  # None once the reader has been notified of the end
        self.max_frame_bytes = max_frame_bytes
        self._memory = memory or MemoryPool()
        self._buffer_bytes = buffer_bytes
        self.reservation = Reservation(self, self._memory, self.resume_reading)
        self._pause_when_blocked = pause_when_blocked
        self._transport: asyncio.Transport | None = None
        self.send_queue = SendQueue(self)
        # Assigning the bound method saves one call for each response.
        self.write: Callable[[Sequence[Part]], None] = self.send_queue.write
        """Send the parts after everything that was written before. The connection then releases
        each FileSlice.
        """
        self._buffer: bytearray | None = None
        self._start = 0  # the first byte that has not been handed over yet
        self._end = 0  # the end of the received bytes
        self._paused = 0  # reasons not to hand over frames
        self._stopped = 0  # reasons that also stop reading the socket
        self._is_full = False  # another reason: enough frames are held back
        self._has_ended = False  # the peer has ended while frames are held back
        self._turn_ends_at = 0.0  # on the loop's clock; 0: not checked in this turn
        self._time: Callable[[], float] = float  # the loop's clock, once there is a transport
        self._closing = False
        self.was_active = True
        """True once bytes were received or sent. The search for idle connections resets it."""
        self.idle_since_ms = 0
        """The start of the idle time, which the search for idle connections sets."""
        self.local_address: Address = ("", 0)
        self.peer_address: Address = ("", 0)
        """The peer's address. The acceptor may set it early, because it cannot be read after a
        reset.
        """
        self.peer_name = ""
        """The user name in the peer's certificate, or an empty string if the peer has no
        certificate.
        """

    # ---- lifecycle ----

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's transport is not a subclass
        self._time = asyncio.get_running_loop().time
        self.send_queue.open(self._transport)
        self.local_address = _address(transport.get_extra_info("sockname"))
        if not self.peer_address[1]:
            self.peer_address = _address(transport.get_extra_info("peername"))
        if self._reader is not None:
            self._reader.connection_opened(self)

    def connection_lost(self, exc: Exception | None) -> None:
        # If a client uses another protocol, it gets no response and hangs up. Its first bytes are
        # still in the buffer and show which protocol it is.
        if exc is None and not self._closing and self._foreign():
            exc = CorruptData(
                f"the other side speaks {self._foreign()}, which this connection does not"
            )
        self._closing = True
        self.send_queue.end()
        self._buffer = None
        self.reservation.end()
        self._notify_closed(exc)

    @property
    def was_opened(self) -> bool:
        """Whether the reader was notified that the connection was opened and will therefore be
        notified when it is closed.
        """
        return self._transport is not None

    @property
    def held_bytes(self) -> int:
        """The number of bytes that have been received but not handed over yet."""
        return self._end - self._start

    @property
    def is_closing(self) -> bool:
        return self._closing

    @property
    def is_held_up(self) -> bool:
        """Whether reading is paused for reasons other than responses that the peer has not read."""
        return self._stopped > self.send_queue.is_blocked

    @property
    def has_ended(self) -> bool:
        """Whether the peer will send no more data. It may still be waiting for responses."""
        return self._has_ended

    def close(self) -> None:
        """Close the connection when all bytes that were written have been sent."""
        if self._closing:
            return
        self._closing = True
        self.send_queue.finish()

    def abort(self) -> None:
        """Close the connection immediately. Bytes that have not been sent are dropped."""
        self._closing = True
        self.send_queue.refuse()
        if self._transport is not None:
            self._transport.abort()

    def admit(self, max_frame_bytes: int, memory: MemoryPool) -> None:
        """Accept frames of up to this size, and reserve their memory in this pool. Call this once
        the peer is known.
        """
        self.reservation.free()
        self.max_frame_bytes = max_frame_bytes
        self._memory = self.reservation.pool = memory
        self._buffer_bytes = _BUFFER_BYTES

    # ---- reading ----

    def get_buffer(self, sizehint: int) -> memoryview:
        if self._buffer is None:
            self._buffer = self._memory.take(self._buffer_bytes)
        elif self._end == len(self._buffer):
            self._make_room()
        return memoryview(self._buffer)[self._end :]

    def buffer_updated(self, nbytes: int) -> None:
        self._end += nbytes
        self.was_active = True
        self._hand_over()

    def eof_received(self) -> bool:
        # The event loop has taken a buffer to read the end of the stream into. Return it
        # immediately, because many connections may end in the same iteration of the loop.
        self._give_back_buffer()
        if self._paused and not self._closing and self._holds_frame():
            # Process the frames that were sent before the end, because with acks=0, a client does
            # not wait for a response.
            self._has_ended = True
            return True
        return False

    def pause_reading(self) -> None:
        """Stop reading and handing over frames until `resume_reading` is called. Calls may be
        nested.
        """
        self._paused += 1
        self._stop_reading()

    def resume_reading(self) -> None:
        assert self._stopped > 0, "resume_reading without pause_reading"
        self._paused -= 1
        self._stopped -= 1
        self._go_on(was_stopped=True)

    def hold_frames(self) -> None:
        """Stop handing over frames until `release_frames` is called.

        Calls may be nested, also with `pause_reading`. Up to a limit, the connection continues to
        receive bytes, so that it can notice when the peer closes it.
        """
        self._paused += 1

    def hand_back(self, frame: memoryview) -> None:
        """Hold back frames, including the one that is being handed over. That frame will be handed
        over again."""
        self._start -= 4 + len(frame)
        self.hold_frames()

    def release_frames(self) -> None:
        assert self._paused > 0, "release_frames without hold_frames"
        self._paused -= 1
        self._go_on(was_stopped=False)

    def _go_on(self, *, was_stopped: bool) -> None:
        if self._closing or self._transport is None:
            return
        if not self._paused:
            if self._is_full:
                self._is_full = False
                self._stopped -= 1
                was_stopped = True
            if not self.send_queue.is_gathering:
                self._hand_over()  # the frames that were already in the buffer
        is_idle = was_stopped and not self._stopped and not self._has_ended
        if is_idle and not self._transport.is_closing():
            self._transport.resume_reading()

    def _stop_reading(self) -> None:
        self._stopped += 1
        if self._stopped == 1 and self._transport is not None and not self._transport.is_closing():
            self._transport.pause_reading()

    def _hand_over(self) -> None:
        """Hand over the complete frames in the buffer to the reader, but no more than one iteration
        of the loop allows.
        """
        send_queue = self.send_queue
        send_queue.is_gathering = True
        left = _FRAMES_PER_TURN
        self._turn_ends_at = 0.0
        try:
            while True:
                reader = self._reader
                if reader is None:
                    break
                left = self._take_frames(reader, left)
                reader.wake_ended(self)
                if not self._has_frame():
                    break  # otherwise, this round has made room for another round
                if left <= 0:
                    self.pause_reading()
                    asyncio.get_running_loop().call_soon(self.resume_reading)
                    break
        finally:
            send_queue.is_gathering = False
            send_queue.flush()
        self._give_back_buffer()
        if self._paused:
            # While frames are held back, the connection must notice if the peer closes it. However,
            # a peer that keeps sending must not use up the memory.
            if not self._is_full and self._end - self._start >= _HELD_BYTES:
                self._is_full = True
                self._stop_reading()
        elif self._has_ended:
            self.close()

    def _give_back_buffer(self) -> None:
        """Move a small incomplete frame to a buffer that is just large enough.

        If a client stops in the middle of a frame, it then uses only as much memory as it has sent.
        """
        buffer, held = self._buffer, self._end - self._start
        if buffer is None or held > _SMALL_BYTES or (held and len(buffer) <= _SMALL_BYTES):
            return
        self._buffer = bytearray(memoryview(buffer)[self._start : self._end]) if held else None
        self._start, self._end = 0, held
        if len(buffer) > _SMALL_BYTES:
            # This is safe even if there are views of the buffer, because they keep it alive.
            self._memory.give(buffer)

    def _take_frames(self, reader: Reader, left: int) -> int:
        """Hand over frames, and return how many more may be handed over in this iteration of the
        loop.
        """
        reservation = self.reservation
        while left > 0 and not self._paused and not self._closing and self._end - self._start >= 4:
            assert self._buffer is not None
            size: int = _LENGTH.unpack_from(self._buffer, self._start)[0]
            if size < 0 or size > self.max_frame_bytes:
                self._refuse(size)
                break
            frame_end = self._start + 4 + size
            if frame_end > self._end:
                self._reserve_memory(size)
                break
            frame = memoryview(self._buffer)[self._start + 4 : frame_end]
            self._start = frame_end
            left -= 1
            reader.frame_received(self, frame)
            # The bytes have been decoded or written, unless a handler has decided to keep the
            # reservation.
            if reservation.size_bytes and self._start == frame_end:  # otherwise it was handed back
                reservation.on_handed_over()
            if not left % _FRAMES_PER_LOOK and self._is_turn_over():
                return 0
        return left

    def _is_turn_over(self) -> bool:
        now = self._time()
        if not self._turn_ends_at:
            self._turn_ends_at = now + _TURN_S
        return now >= self._turn_ends_at

    def _has_frame(self) -> bool:
        return not self._paused and not self._closing and self._holds_frame()

    def _holds_frame(self) -> bool:
        """Return whether there is a complete frame to be handed over."""
        if self._end - self._start < 4:
            return False
        assert self._buffer is not None
        size: int = _LENGTH.unpack_from(self._buffer, self._start)[0]
        return self._start + 4 + size <= self._end

    def _make_room(self) -> None:
        """Move the incomplete frame at the end of a full buffer to a larger buffer.

        Each time, a new buffer is allocated, because there may be views of the old one. Its size is
        doubled regardless of the length that the peer has announced, so the memory is proportional
        to the bytes that were sent.
        """
        assert self._buffer is not None
        begun = memoryview(self._buffer)[self._start : self._end]  # a view prevents its reuse
        held = len(begun)
        needed = self._buffer_bytes
        if held >= 4:
            needed = _LENGTH.unpack_from(self._buffer, self._start)[0] + 4
        roomier = self._memory.take(max(self._buffer_bytes, min(needed, 2 * held)))
        roomier[:held] = begun
        begun.release()
        if len(self._buffer) > _SMALL_BYTES:
            self._memory.give(self._buffer)
        self._buffer = roomier
        self._start, self._end = 0, held

    def _reserve_memory(self, size: int) -> None:
        """Reserve memory for the next buffer, because the frame has filled this one.

        The first buffer is available to every connection, so it is not counted.
        """
        buffer, reservation = self._buffer, self.reservation
        assert buffer is not None
        if self._end < len(buffer) or reservation.is_waiting:
            return
        room = min(size + 4, 2 * (self._end - self._start))
        if room > self._buffer_bytes and not reservation.grow(
            room, memoryview(buffer)[self._start + 4 : self._end]
        ):
            self.pause_reading()

    def _foreign(self) -> str:
        """Return the name of another protocol if the received bytes belong to one, otherwise an
        empty string.
        """
        if self._buffer is None:
            return ""
        return protocol_of(bytes(self._buffer[self._start : min(self._end, self._start + 4)]))

    def _refuse(self, size: int) -> None:
        error = CorruptData(refusal(self._foreign(), size, self.max_frame_bytes))
        self._buffer = None
        self._start = self._end = 0
        self.abort()
        self._notify_closed(error)

    # ---- writing ----

    def pause_writing(self) -> None:
        self.send_queue.on_transport_full()

    def resume_writing(self) -> None:
        self.send_queue.on_transport_empty()

    def on_blocked(self) -> None:
        # If a peer does not read its responses, stop building them, because they would accumulate.
        if self._pause_when_blocked:
            self.pause_reading()

    def on_room(self) -> None:
        self.was_active = True
        if self._pause_when_blocked and not self._closing:
            self.resume_reading()

    def on_send_failed(self, error: OSError) -> None:
        self.abort()
        self._notify_closed(error)

    def _notify_closed(self, error: Exception | None) -> None:
        reader, self._reader = self._reader, None
        if reader is not None:
            reader.connection_closed(self, error)


def _address(name: object) -> Address:
    """Return the host and the port in a socket name.

    The name of an IPv6 socket has two more items. A Unix socket has no name.
    """
    if isinstance(name, tuple) and len(name) >= 2:
        host, port = str(name[0]), int(name[1])
        return (host.removeprefix("::ffff:"), port)
    return ("", 0)
