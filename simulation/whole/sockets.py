"""A machine's kernel: ends of connections, and the sockets by which a process holds them.

An end belongs to a process until the process closes it or dies. What is sent into it flows to its
peer through the network, in order. At most a window of it may be unread there or under way, and the
rest stays with the sender. An end that no process holds answers bytes with a reset.
"""

from __future__ import annotations

import errno
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from simulation.whole.lives import CURRENT, Life

if TYPE_CHECKING:
    from contextvars import Context

    from simulation.whole.loop import VirtualLoop
    from simulation.whole.network import Host, Network

Address = tuple[str, int]

WINDOW_BYTES = 128 * 1024


class Signal:
    """The signals that travel in a flow in addition to bytes."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name


EOF: Final = Signal("end")
RESET: Final = Signal("reset")

Item = bytes | Signal


class End:
    """One side of a connection."""

    __slots__ = (
        "_at",
        "_received",
        "address",
        "error",
        "flow",
        "flow_at_us",
        "flow_is_due",
        "flow_is_stalled",
        "has_ended",
        "holds",
        "host",
        "is_closed",
        "life",
        "network",
        "on_readable",
        "on_room",
        "peer",
        "unread_bytes",
        "way",
    )

    def __init__(self, network: Network, host: Host, life: Life | None, address: Address) -> None:
        self.network = network
        self.host = host
        self.life = life
        self.address = address
        self.peer: End | None = None
        self.way = b""
        """The addresses of both ends, for the digest."""
        self.is_closed = False  # no process holds it
        self.has_ended = False  # the peer will send no more
        self.error: OSError | None = None
        self.unread_bytes = 0  # from the peer: under way or received, but not read
        self.on_readable: Callable[[], None] | None = None
        self.on_room: Callable[[], None] | None = None
        self.holds: Callable[[], int] | None = None
        """Returns how many bytes its process has written but could not send."""
        # What this end has sent, each item with the time at which it arrives.
        self.flow: deque[tuple[int, Item]] = deque()
        self.flow_at_us = 0
        self.flow_is_due = False  # there is a timer for its first item
        self.flow_is_stalled = False  # its first item was due, and the way is cut
        self._received: deque[bytes] = deque()
        self._at = 0  # how much of the first one has been read

    def join(self, peer: End) -> None:
        """Connect this end with its peer."""
        self.peer = peer
        self.way = f"{self.address}{peer.address}".encode()

    # ---- the process's side ----

    def room(self) -> int:
        """Return how many bytes `send` takes."""
        if self.peer is None or self.is_closed:
            return 0
        return max(WINDOW_BYTES - self.peer.unread_bytes, 0)

    def send(self, data: bytes) -> None:
        """Send all data, for which there is room."""
        assert self.peer is not None
        self.peer.unread_bytes += len(data)
        self.network.send(self, data)

    @property
    def is_readable(self) -> bool:
        return bool(self._received) or self.has_ended or self.error is not None

    @property
    def has_received(self) -> bool:
        return bool(self._received)

    def read_into(self, buffer: memoryview) -> int:
        """Take received bytes, as many as there is space for."""
        position, size = 0, len(buffer)
        received = self._received
        while received and position < size:
            first = received[0]
            if not self._at and len(first) <= size - position:  # nearly always
                buffer[position : position + len(first)] = first
                position += len(first)
                received.popleft()
                continue
            taken = min(len(first) - self._at, size - position)
            buffer[position : position + taken] = first[self._at : self._at + taken]
            position += taken
            self._at += taken
            if self._at == len(first):
                received.popleft()
                self._at = 0
        self._make_room(position)
        return position

    def close(self) -> None:
        """Close the end, which no process then holds. Data already sent still flows, and the peer
        learns that the end is closed."""
        if self.is_closed:
            return
        self.is_closed = True
        self.on_readable = self.on_room = None
        self.host.ends.pop(self, None)
        if self.peer is not None and self.error is None:
            # As on Linux, closing with unread bytes notifies the peer.
            self.network.send(self, RESET if self._received else EOF)
        self._forget_received()

    # ---- the network's side ----

    def arrived(self, item: Item) -> None:
        """Take an item that has arrived from the peer."""
        if self.is_closed:
            if isinstance(item, bytes) and self.error is None:
                self.error = ConnectionResetError(errno.ECONNRESET, "Connection reset by peer")
                self.network.send(self, RESET)
            return
        if isinstance(item, bytes):
            self._received.append(item)
        elif item is EOF:
            self.has_ended = True
        else:
            self.reset()
            return
        if self.on_readable is not None:
            self.on_readable()

    def reset(self) -> None:
        """Break the connection: what was received is gone, and nothing can be sent."""
        if self.error is None:
            self.error = ConnectionResetError(errno.ECONNRESET, "Connection reset by peer")
        self._forget_received()
        if self.on_readable is not None:
            self.on_readable()
        if self.on_room is not None:
            self.on_room()  # a task waiting to write learns of it as well

    def vanish(self) -> None:
        """Remove the end because its machine has lost power: no peer is notified."""
        self.is_closed = True
        self.on_readable = self.on_room = None
        if self.flow_is_stalled:
            self.flow.clear()
        self._received.clear()

    def _forget_received(self) -> None:
        freed = sum(map(len, self._received)) - self._at
        self._received.clear()
        self._at = 0
        self._make_room(freed)

    def _make_room(self, size: int) -> None:
        self.unread_bytes -= size
        peer = self.peer
        if size and peer is not None and peer.on_room is not None:
            peer.on_room()


class SimSocket:
    """Implements the part of `socket.socket` that a broker uses."""

    __slots__ = ("_descriptor", "_name")

    def __init__(self, descriptor: int, name: Address) -> None:
        self._descriptor = descriptor
        self._name = name

    def fileno(self) -> int:
        return self._descriptor

    def getsockname(self) -> Address:
        return self._name

    def setblocking(self, flag: bool) -> None:
        """Do nothing: the socket never blocks."""

    def setsockopt(self, level: int, option: int, value: int) -> None:
        """Do nothing: there is nothing to tune."""


class AcceptedSocket(SimSocket):
    """A connection that was taken from the backlog and has no transport yet."""

    __slots__ = ("end",)

    def __init__(self, descriptor: int, end: End) -> None:
        super().__init__(descriptor, end.address)
        self.end = end

    def close(self) -> None:
        self.end.close()


class Watch:
    """Implements a loop's `add_reader`: calls the callback as long as a connection is waiting."""

    __slots__ = ("_callback", "_context", "_is_due", "_listening", "_loop")

    def __init__(
        self,
        loop: VirtualLoop,
        listening: ListeningSocket,
        callback: Callable[[], object],
        context: Context,
    ) -> None:
        self._loop = loop
        self._listening = listening
        self._callback = callback
        self._context = context
        self._is_due = False

    def soon(self) -> None:
        if not self._is_due:
            self._is_due = True
            self._loop.call_soon(self._readable, context=self._context)

    def _readable(self) -> None:
        self._is_due = False
        if self._listening.watch is self and self._listening.is_waiting:
            self._callback()
            if self._listening.watch is self and self._listening.is_waiting:
                self.soon()


class ListeningSocket(SimSocket):
    """A port on which connections are accepted, and the backlog of connections waiting for that."""

    __slots__ = ("_backlog", "_limit", "_network", "host", "life", "watch")

    def __init__(self, network: Network, host: Host, address: Address, limit: int) -> None:
        super().__init__(network.new_descriptor(), address)
        self._network = network
        self.host = host
        self.life = CURRENT.get()
        self.watch: Watch | None = None
        self._limit = limit
        self._backlog: deque[End] = deque()

    def accept(self) -> tuple[AcceptedSocket, Address]:
        if not self._backlog:
            raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")
        end = self._backlog.popleft()
        assert end.peer is not None
        return AcceptedSocket(self._network.new_descriptor(), end), end.peer.address

    def close(self) -> None:
        """Close the port and reset the connections in the backlog."""
        self.watch = None
        self._network.unlisten(self)
        backlog, self._backlog = self._backlog, deque()
        for end in backlog:
            self._network.send(end, RESET)
            end.reset()
            end.close()

    def vanish(self) -> None:
        """Remove the port because its machine has lost power."""
        self.watch = None
        self._backlog.clear()

    @property
    def is_full(self) -> bool:
        return len(self._backlog) > self._limit

    @property
    def is_waiting(self) -> bool:
        """Whether a connection is waiting to be accepted."""
        return bool(self._backlog)

    def knocked(self, end: End) -> None:
        self._backlog.append(end)
        if self.watch is not None:
            self.watch.soon()
