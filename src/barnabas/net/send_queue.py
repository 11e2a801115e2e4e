"""Queues the parts that a connection has not sent yet, and handles peers that do not read.

    write([bytes, ...])            gathered -------------> transport.write, once per wake-up
    write([bytes, FileSlice, ...]) pending --> direct ---> send, sendfile on a duplicate descriptor
                                           \\-> TLS etc. -> transport.write

The queue owns all FileSlices that are passed to it. Parts are sent in the order in which they were
written, and each slice is released exactly once, whether or not it was sent. Bytes never overtake a
file: while parts are pending, later parts wait behind them, and nothing bypasses the transport
until its buffer is empty. The queue does not know whether the peer has read anything.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from barnabas.clock import spent_ns
from barnabas.errors import is_out_of_descriptors
from barnabas.types import FileSlice, Part

_GATHER_BYTES = 64 * 1024  # responses of one wake-up that are sent in one system call
_READ_AHEAD_BYTES = 64 * 1024  # for a file that cannot be sent by sendfile (TLS, Windows)
_MSG_MORE = getattr(socket, "MSG_MORE", 0)


class Sender(Protocol):
    """The connection whose parts are sent by the queue."""

    def on_blocked(self) -> None:
        """Called when parts have to wait because the peer does not read."""
        ...

    def on_room(self) -> None:
        """Called when the peer has read data and the queue has sent as much as possible."""
        ...

    def on_send_failed(self, error: OSError) -> None:
        """Called when sending has failed and the connection can no longer be used."""
        ...


class SendQueue:
    """The parts that a connection has not sent yet. Call `open` before anything is sent."""

    __slots__ = (
        "_file_socket",
        "_gathered",
        "_gathered_bytes",
        "_is_closed",
        "_is_ending",
        "_pending",
        "_pending_bytes",
        "_sender",
        "_transport",
        "_transport_is_full",
        "_waits_since_ns",
        "_watching",
        "blocked_ns",
        "is_gathering",
    )

    def __init__(self, sender: Sender) -> None:
        self._sender: Sender | None = sender  # None after the end, so that no cycle remains
        self._transport: asyncio.Transport | None = None
        self._is_closed = False  # parts are no longer accepted
        self._is_ending = False  # the transport is closed once everything has been sent
        self.is_gathering = False
        """Whether bytes are collected until `flush` sends all of them together.

        A connection sets this during a wake-up.
        """
        self._gathered: list[Any] = []  # bytes of any kind, no files
        self._gathered_bytes = 0
        self._pending: deque[Part] = deque()
        self._pending_bytes = 0
        self._file_socket: socket.socket | None = None
        self._transport_is_full = False  # the transport has unsent bytes
        self._watching = False  # the socket is full, and the loop will report when it has room
        # when parts started to wait for the peer to read; 0 if no parts are waiting
        self._waits_since_ns = 0
        self.blocked_ns = 0
        """The total time for which parts had to wait since this was last reset."""

    # ---- lifecycle ----

    def open(self, transport: asyncio.Transport) -> None:
        """Accept parts and send them over this transport."""
        self._transport = transport
        # The transport must be empty when a file bypasses it. With a low-water mark of zero, it
        # signals when all earlier bytes have been sent.
        transport.set_write_buffer_limits(high=0)

    def finish(self) -> None:
        """Accept no more parts. Close the transport when all parts that were accepted have been
        sent.
        """
        self.flush()
        self._is_closed = True
        self._is_ending = True
        if self._transport is not None and not self._pending:
            self._transport.close()

    def refuse(self) -> None:
        """Accept no more parts because the transport is about to be aborted."""
        self._is_closed = True

    def end(self) -> None:
        """Drop everything that was not sent because the transport has been closed."""
        self._is_closed = True
        self._stop_watching()
        if self._file_socket is not None:
            self._file_socket.close()
            self._file_socket = None
        _release(self._pending)
        self._pending.clear()
        self._pending_bytes = 0
        self._sender = None

    @property
    def is_blocked(self) -> bool:
        """Whether parts have to wait because the peer does not read."""
        return self._transport_is_full or self._watching

    @property
    def unsent_bytes(self) -> int:
        """The number of bytes that were written but have not left this process."""
        if self._transport is None:
            return 0
        return self._gathered_bytes + self._pending_bytes + self._transport.get_write_buffer_size()

    # ---- sending ----

    def write(self, parts: Sequence[Part]) -> None:
        """Send the parts after everything that was written before. The queue then releases each
        FileSlice.
        """
        if self._is_closed or self._transport is None:
            _release(parts)
            return
        # If no file comes before these bytes, they are sent together with all other bytes of this
        # wake-up.
        if not self._pending:
            size_bytes = 0
            for part in parts:
                if isinstance(part, FileSlice):
                    break
                size_bytes += len(part)
            else:
                # A client that pipelines requests gets all responses of a wake-up in one system
                # call. This makes a small request a third faster.
                self._gathered += parts
                self._gathered_bytes += size_bytes
                if not self.is_gathering or self._gathered_bytes > _GATHER_BYTES:
                    self.flush()
                return
        self.flush()
        for part in parts:
            if len(part):
                self._pending.append(part)
                self._pending_bytes += len(part)
            elif isinstance(part, FileSlice):
                part.release()
        self._pump()

    def flush(self) -> None:
        """Send the bytes that were collected."""
        if self._gathered and not self._is_closed:
            assert self._transport is not None
            gathered, self._gathered, self._gathered_bytes = self._gathered, [], 0
            self._transport.write(gathered[0] if len(gathered) == 1 else b"".join(gathered))

    def on_transport_full(self) -> None:
        """Record that the transport has bytes that were not sent (`pause_writing` in asyncio)."""
        self._transport_is_full = True
        self._on_blocked()

    def on_transport_empty(self) -> None:
        """Record that the transport has sent all bytes (`resume_writing` in asyncio)."""
        self._transport_is_full = False
        self._on_room()

    def _on_blocked(self) -> None:
        self._waits_since_ns = self._waits_since_ns or spent_ns()
        if self._sender is not None:
            self._sender.on_blocked()

    def _on_room(self) -> None:
        """Continue to send, because the peer has read some data."""
        self._pump()
        if self._waits_since_ns and not self.is_blocked:
            self.blocked_ns += spent_ns() - self._waits_since_ns
            self._waits_since_ns = 0
        if self._sender is not None:
            self._sender.on_room()

    def _pump(self) -> None:
        """Send pending parts until a part has to wait."""
        while self._pending and not self._transport_is_full and not self._watching:
            part = self._pending[0]
            if isinstance(part, FileSlice):
                if not self._send_file(part):
                    return
            elif not self._send_bytes(part):
                return
        if not self._pending and self._is_ending:
            assert self._transport is not None
            self._transport.close()

    def _send_bytes(self, part: bytes | bytearray | memoryview) -> bool:
        """Send a part that consists of bytes. Returns False if the rest has to wait."""
        self._pending.popleft()
        self._pending_bytes -= len(part)
        assert self._transport is not None
        if self._pending and self._is_direct():
            # More data follows immediately, so use MSG_MORE to avoid sending the header in a packet
            # of its own.
            try:
                sent = self._socket().send(part, _MSG_MORE)
            except (BlockingIOError, InterruptedError):
                sent = 0
            except OSError as error:
                self._fail(error)
                return False
            if sent < len(part):
                self._pending.appendleft(memoryview(part)[sent:])
                self._pending_bytes += len(part) - sent
                self._watch()
                return False
            return True
        self._transport.write(part)
        return True

    def _send_file(self, part: FileSlice) -> bool:
        """Send as much of a file as the socket accepts. Returns False if the rest has to wait."""
        assert self._transport is not None
        try:
            if self._is_direct():
                sent = os.sendfile(
                    self._socket().fileno(), part.file.fileno(), part.position, part.size
                )
            else:
                data = part.file.pread(min(part.size, _READ_AHEAD_BYTES), part.position)
                sent = len(data)
                self._transport.write(data)
        except (BlockingIOError, InterruptedError):
            self._watch()
            return False
        except OSError as error:
            self._fail(error)
            return False
        if sent == 0:
            # The file is shorter than announced. Close the connection, because the peer would wait
            # for the missing bytes indefinitely.
            self._fail(OSError(f"file ended {part.size} bytes early while it was being sent"))
            return False
        self._pending_bytes -= sent
        if sent == part.size:
            self._pending.popleft()
            part.release()
            return True
        part.position += sent
        part.size -= sent
        return True

    def _fail(self, error: OSError) -> None:
        if self._sender is not None:
            self._sender.on_send_failed(error)

    # ---- past the transport ----

    def _is_direct(self) -> bool:
        """Return whether bytes may be sent directly to the socket, without using the transport."""
        if not hasattr(os, "sendfile"):
            return False
        assert self._transport is not None
        info = self._transport.get_extra_info
        # If bytes bypassed the transport, they would not be encrypted.
        if info("sslcontext") is not None or info("socket") is None:
            return False
        try:
            self._socket()
        except OSError as error:
            return not is_out_of_descriptors(error)  # otherwise, the next use raises the error
        return True

    def _socket(self) -> socket.socket:
        """Return a duplicate of the transport's socket, because uvloop does not allow `add_writer`
        for the original.
        """
        if self._file_socket is None:
            assert self._transport is not None
            own = self._transport.get_extra_info("socket")
            self._file_socket = socket.socket(fileno=os.dup(own.fileno()))
            self._file_socket.setblocking(False)
        return self._file_socket

    def _watch(self) -> None:
        """Wait until the socket accepts more data."""
        if not self._watching:
            self._watching = True
            self._on_blocked()
            asyncio.get_running_loop().add_writer(self._socket().fileno(), self._writable)

    def _stop_watching(self) -> None:
        if self._watching:
            self._watching = False
            asyncio.get_running_loop().remove_writer(self._socket().fileno())

    def _writable(self) -> None:
        self._stop_watching()
        self._on_room()


def _release(parts: Iterable[Part]) -> None:
    for part in parts:
        if isinstance(part, FileSlice):
            part.release()
