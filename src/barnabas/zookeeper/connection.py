"""Implements a client's connection to the ZooKeeper server.

Everything that is sent is tagged with the last transaction at that moment, and waits until this
transaction is on disk. Transactions reach the disk in order, so what is sent stays in order, too.
A client that does not read, or that sends more requests than the server has answered, is not read
from until it has caught up.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from struct import Struct
from typing import TYPE_CHECKING, cast

from barnabas.errors import CorruptData
from barnabas.zookeeper.access import Identity
from barnabas.zookeeper.jute import MAX_FRAME_BYTES, connect_request, event_frame
from barnabas.zookeeper.latencies import (
    CONNECTING,
    REQUEST_BYTES,
    Response,
    Responses,
    is_counted,
)
from barnabas.zookeeper.sessions import Session
from barnabas.zookeeper.words import WORD_BYTES, is_word

if TYPE_CHECKING:
    from barnabas.zookeeper.digest_md5 import DigestExchange
    from barnabas.zookeeper.server import ZooKeeperServer

_log = logging.getLogger(__name__)

_LENGTH = Struct(">i")
_MOST_HELD = 1000
_MOST_WATCHES = 200_000
_MOST_UNREAD_BYTES = 64 << 20


class ClientConnection(asyncio.Protocol):
    """A connection, from its first bytes to its end."""

    def __init__(self, server: ZooKeeperServer) -> None:
        self._server = server
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._received = bytearray()
        self._ready: list[bytes] = []
        self._is_flush_due = False
        self._held: deque[tuple[int, bytes, bytes, float]] = deque()
        self._arrived_s = 0.0  # the time of the bytes that are handled
        self._request = b""  # the head of the request that is carried out
        # Responses that need not wait for the disk are counted together when they are sent.
        self._uncounted = 0
        self._last: Response | None = None
        self._is_finishing = False
        self._is_blocked = False  # the client does not read
        self._is_paused = False
        self._is_connected = False  # the first record has been handled
        self.session: Session | None = None
        self.identities: list[Identity] = []
        self.exchange: DigestExchange | None = None
        """A login that has begun."""
        self.host = ""
        self.client_port = 0
        self.received = self.sent = 0
        self.responses = Responses()
        self.opened_at_s = self._loop.time()
        self.opened_at_ms = server.wall_ms()

    @property
    def held(self) -> int:
        """The number of frames that wait for the disk."""
        return len(self._held)

    @property
    def is_waiting_for_session(self) -> bool:
        return not self._is_connected

    # ---- the transport ----

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        name = transport.get_extra_info("peername")
        self.client_port = name[1] if name else 0
        self.host = str(name[0]).removeprefix("::ffff:") if name else ""
        self.identities.append(("ip", self.host))
        if not self._server.admit(self):
            self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_finishing = True
        self._held.clear()
        self._ready.clear()
        self._server.forget(self)

    def data_received(self, data: bytes) -> None:
        self._arrived_s = self._loop.time()
        self._received += data
        self._handle_received()

    def eof_received(self) -> bool:
        return False

    def pause_writing(self) -> None:
        self._is_blocked = True
        self._pause_if_needed()

    def resume_writing(self) -> None:
        self._is_blocked = False
        self._resume_if_possible()

    # ---- requests ----

    def _handle_received(self) -> None:
        received = self._received
        at = 0
        try:
            while not self._is_finishing and not self._is_paused and len(received) - at >= 4:
                if not self._is_connected and is_word(bytes(received[:WORD_BYTES])):
                    self._answer_word(bytes(received[:WORD_BYTES]))
                    return
                (length,) = _LENGTH.unpack_from(received, at)
                if not 0 <= length <= MAX_FRAME_BYTES:
                    raise CorruptData(
                        f"a frame has {length} bytes, but at most {MAX_FRAME_BYTES} are accepted"
                    )
                if len(received) - at - 4 < length:
                    break
                frame = bytes(received[at + 4 : at + 4 + length])
                at += 4 + length
                self._handle(frame)
                self._pause_if_needed()
        except CorruptData as error:
            _log.warning("closed the connection from %s: %s", self.host, error)
            self.abort()
        del received[:at]

    def _handle(self, frame: bytes) -> None:
        server = self._server
        self.received += 1
        if not self._is_connected:
            request = connect_request(frame)
            if request.last_zxid > server.processor.tree.zxid:
                raise CorruptData(
                    f"the client has seen transaction {request.last_zxid}, but the last one here "
                    f"is {server.processor.tree.zxid}"
                )
            self._is_connected = True
            # A client that comes back creates no session.
            self._request = b"" if request.session_id else CONNECTING
            server.connect(self, request)
        else:
            self._request = frame[:REQUEST_BYTES]
            server.execute(self, frame)
        if server.processor.watches.count_of(self) > _MOST_WATCHES:
            raise CorruptData(f"the client has more than {_MOST_WATCHES} watches")

    def _answer_word(self, word: bytes) -> None:
        self.received += 1
        self._is_connected = True
        self._received.clear()
        self._ready.append(self._server.word_answer(word).encode())
        self._flush()
        self.finish()

    # ---- responses ----

    def notify(self, kind: int, path: str) -> None:
        self._enqueue(event_frame(kind, path), b"")

    def send(self, frame: bytes) -> None:
        self._enqueue(frame, self._request)

    def _enqueue(self, frame: bytes, request: bytes) -> None:
        if self._is_finishing:
            return
        server = self._server
        zxid = server.processor.tree.zxid
        if zxid > server.synced_zxid:
            self._held.append((zxid, frame, request, self._arrived_s))
            server.holding[self] = None
            return
        if request:
            self._uncounted += 1
            self._last = (request, frame, zxid)
        self._ready.append(frame)
        if not self._is_flush_due:
            self._is_flush_due = True
            self._loop.call_soon(self._flush)

    def _count(self, response: Response, arrived_s: float, count: int = 1) -> None:
        if is_counted(response):
            now_s = self._loop.time()
            self._server.latencies.add(now_s - arrived_s, count)
            self.responses.count(response, arrived_s, now_s, count)

    def release(self, synced_zxid: int) -> None:
        """Send what waited for transactions that are on disk now."""
        held = self._held
        while held and held[0][0] <= synced_zxid:
            zxid, frame, request, arrived_s = held.popleft()
            if request:
                self._count((request, frame, zxid), arrived_s)
            self._ready.append(frame)
        self._flush()
        self._resume_if_possible()

    def finish(self) -> None:
        self._is_finishing = True
        if not self._held and not self._ready and self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        self._is_finishing = True
        if self._transport is not None:
            self._transport.abort()

    def _flush(self) -> None:
        self._is_flush_due = False
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        if self._last is not None:
            self._count(self._last, self._arrived_s, self._uncounted)
            self._last, self._uncounted = None, 0
        if self._ready:
            self.sent += len(self._ready)
            transport.write(b"".join(self._ready))
            self._ready.clear()
            if transport.get_write_buffer_size() > _MOST_UNREAD_BYTES:
                _log.warning("closed the connection from %s: it does not read", self.host)
                self.abort()
        if self._is_finishing and not self._held:
            transport.close()

    def _pause_if_needed(self) -> None:
        is_full = len(self._held) >= _MOST_HELD or self._is_blocked
        if is_full and not self._is_paused and self._transport is not None:
            self._is_paused = True
            self._transport.pause_reading()

    def _resume_if_possible(self) -> None:
        if not self._is_paused or self._is_blocked or len(self._held) >= _MOST_HELD:
            return
        self._is_paused = False
        if self._is_finishing or self._transport is None or self._transport.is_closing():
            return
        self._handle_received()
        if not self._is_paused and not self._transport.is_closing():
            self._transport.resume_reading()
