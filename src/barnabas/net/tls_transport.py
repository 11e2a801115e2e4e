"""Implements TLS as a layer between a connection and the transport of its socket, for asyncio and
uvloop.

    socket --> scratch buffer --> incoming BIO --SSLObject--> the protocol's buffer
    socket <-- transport.write <-- outgoing BIO <--SSLObject-- write

All connections of a thread share the scratch buffer and both BIOs, so an idle connection has no
buffer at all. This works because each use of OpenSSL is a single plain call. All bytes that were
put into a BIO are taken out again before anything else runs, even if the call raises an exception.
If a record was only partly received, it stays in the SSLObject. Bytes that the protocol has no room
for stay in `_held`.

`connection_made` is called when the handshake is complete. If the handshake fails, none of the
connection's methods is called.
"""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from barnabas.net.tls_failures import TlsFailure, TlsInterrupted, explain
from barnabas.net.turns import Turns

if TYPE_CHECKING:
    from barnabas.net.connection import Connection

_SCRATCH_BYTES = 256 * 1024
# bytes encrypted at a time; above 128 KiB, malloc requests memory from the kernel
_WRITE_BYTES = 64 * 1024
_HANDSHAKE_RECORD = 0x16
_UNKNOWN = -1  # the size of the requested buffer is unknown


class _Scratch(threading.local):
    """The buffers that all TLS connections of a thread share. They are empty whenever they are not
    in use.
    """

    def __init__(self) -> None:
        self.received = memoryview(bytearray(_SCRATCH_BYTES))
        self.incoming = ssl.MemoryBIO()
        self.outgoing = ssl.MemoryBIO()


_scratch = _Scratch()


class TlsTransport(asyncio.BufferedProtocol):
    """A TLS connection, which is the protocol of a plain transport and the transport of another
    protocol.
    """

    __slots__ = (
        "_context",
        "_failure",
        "_handshake",
        "_has_ended",
        "_held",
        "_is_blocked",
        "_is_closing",
        "_is_open",
        "_is_paused",
        "_is_server",
        "_opened",
        "_protocol",
        "_server_name",
        "_ssl",
        "_transport",
        "_turns",
    )

    def __init__(
        self,
        protocol: Connection,
        context: ssl.SSLContext,
        *,
        server_name: str | None = None,
        turns: Turns | None = None,
        opened: Callable[[ssl.SSLObject], None] | None = None,
    ) -> None:
        """`server_name` is the host that a client wants to reach. On a server, it is None, and
        handshakes take `turns`. `opened` is called before the protocol learns of the connection,
        and may refuse the connection by raising TlsFailure.
        """
        self._protocol = protocol
        self._context = context
        self._server_name = server_name
        self._turns = turns
        self._opened = opened
        self._is_server = server_name is None
        self._transport: asyncio.Transport | None = None
        # a server's handshake begins with the first received byte
        self._ssl: ssl.SSLObject | None = None
        self._handshake: asyncio.Future[None] | None = None
        self._failure: Exception | None = None
        self._held = b""  # received bytes not yet passed to OpenSSL
        self._is_open = False  # the protocol has been given the connection
        self._has_ended = False  # the peer has announced its end
        self._is_closing = False
        self._is_paused = False
        self._is_blocked = False  # writing by the protocol is paused

    @property
    def was_attached(self) -> bool:
        """Whether there has been a plain transport. If so, the transport closes the socket."""
        return self._transport is not None

    async def handshake(self) -> None:
        """Wait until the handshake is complete. Raises TlsFailure or OSError."""
        if self._failure is not None:
            raise self._failure
        if not self._is_open:
            self._handshake = asyncio.get_running_loop().create_future()
            await self._handshake

    # ---- protocol of the plain transport ----

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's transport is not a subclass
        # With this limit, the protocol learns immediately that bytes have to wait.
        self._transport.set_write_buffer_limits(high=0)
        if not self._is_server:
            self._advance()

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_closing = True
        self._ssl = None
        self._held = b""
        # The peer has announced the end of the connection, so it does not matter if announcing ours
        # fails.
        error = self._failure or (None if self._has_ended else exc)
        if self._is_open:
            self._is_open = False
            self._protocol.connection_lost(error)
            return
        self._end_handshake(
            error or TlsInterrupted("the connection was closed during the TLS handshake")
        )

    def get_buffer(self, sizehint: int) -> memoryview:
        return _scratch.received

    def buffer_updated(self, nbytes: int) -> None:
        if self._is_closing:
            return
        received = _scratch.received[:nbytes]
        if not self._is_open:
            self._on_early_bytes(bytes(received))
        else:
            self._decrypt(received)

    def eof_received(self) -> bool:
        if self._is_open:
            return self._protocol.eof_received()
        if not self._is_closing:
            self._failure = TlsInterrupted(
                "the other side closed the connection during the TLS handshake"
            )
        return False

    def pause_writing(self) -> None:
        if self._is_open and not self._is_blocked:
            self._is_blocked = True
            self._protocol.pause_writing()

    def resume_writing(self) -> None:
        if self._is_open and self._is_blocked:
            self._is_blocked = False
            self._protocol.resume_writing()

    # ---- handshake ----

    def _on_early_bytes(self, received: bytes) -> None:
        assert self._transport is not None
        if self._is_server and self._ssl is None and received[0] != _HANDSHAKE_RECORD:
            self._fail(TlsFailure.plain_text(received))
            return
        self._held += received
        # A client runs one handshake at a time, but a server may have to run a thousand of them.
        if self._turns is None:
            self._advance()
        else:
            self._transport.pause_reading()  # until its turn comes
            self._turns.add(self._take_turn)

    def _take_turn(self) -> None:
        if self._is_closing or self._transport is None:
            return
        self._advance()
        if not (self._is_closing or self._is_paused or self._transport.is_closing()):
            self._transport.resume_reading()

    def _advance(self) -> None:
        """Run one step of the handshake with the bytes that were received."""
        incoming, outgoing = _scratch.incoming, _scratch.outgoing
        if self._ssl is None:
            self._ssl = self._context.wrap_bio(
                incoming, outgoing, server_side=self._is_server, server_hostname=self._server_name
            )
        held, self._held = self._held, b""
        incoming.write(held)
        failure: Exception | None = None
        try:
            self._ssl.do_handshake()
        except ssl.SSLWantReadError:
            return
        except (ssl.SSLError, ssl.CertificateError) as error:
            failure = TlsFailure(explain(error, self._is_server, self._server_name))
        finally:
            self._held = incoming.read()
            self._flush()
        if failure is None and self._opened is not None:
            try:
                self._opened(self._ssl)
            except TlsFailure as refusal:
                failure = refusal
        if failure is not None:
            self._fail(failure)
        else:
            self._open()

    def _open(self) -> None:
        assert self._transport is not None
        self._is_open = True
        self._end_handshake(None)
        self._protocol.connection_made(cast(asyncio.BaseTransport, self))
        if self._transport.get_write_buffer_size():
            self.pause_writing()
        if not self._is_paused and not self._is_closing:
            self._decrypt(b"")

    def _end_handshake(self, error: Exception | None) -> None:
        if error is not None and self._failure is None:
            self._failure = error
        if self._handshake is None or self._handshake.done():
            return
        if error is None:
            self._handshake.set_result(None)
        else:
            self._handshake.set_exception(error)

    # ---- reading ----

    def _decrypt(self, received: bytes | memoryview) -> None:
        """Hand over all decrypted bytes while the protocol accepts them."""
        incoming = _scratch.incoming
        if self._held:
            received, self._held = self._held + received, b""
        while self._ssl is not None:
            incoming.write(received)
            is_end = False
            failure: Exception | None = None
            buffer = self._protocol.get_buffer(_UNKNOWN)
            filled, size = 0, len(buffer)
            try:
                # Some clients send records of only 4 KiB, so this loop has to be fast.
                read: Callable[[int, memoryview], int] = self._ssl.read  # type: ignore[assignment]
                while filled < size:
                    count = read(size - filled, buffer[filled:])
                    if not count:
                        is_end = True
                        break
                    filled += count
                    if not (incoming.pending or self._ssl.pending()):
                        break  # cheaper than the exception that the next read would raise
            except ssl.SSLWantReadError:
                pass
            except ssl.SSLZeroReturnError:
                is_end = True
            except ssl.SSLError as error:
                failure = TlsFailure(explain(error, self._is_server, self._server_name))
            finally:
                received = incoming.read()
                self._flush()  # a response to a key update, or an alert
            # This is needed even if nothing was read, because the protocol must not keep a buffer
            # while the peer is idle.
            self._protocol.buffer_updated(filled)
            if failure is not None:
                self._fail(failure)
                return
            if is_end:
                self._on_peer_end()
                return
            if self._is_paused or self._is_closing:
                self._held = received
                return
            if not received and not self._ssl_pending():
                return

    def _ssl_pending(self) -> int:
        return 0 if self._ssl is None else self._ssl.pending()

    def _on_peer_end(self) -> None:
        self._has_ended = True
        # As in asyncio, True means that the connection stays open for writing.
        if not self._protocol.eof_received():
            self.close()

    def pause_reading(self) -> None:
        self._is_paused = True
        if self._transport is not None and not self._transport.is_closing():
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        self._is_paused = False
        if self._held or self._ssl_pending():
            # The protocol calls this method in the middle of its own work, so continue later.
            asyncio.get_running_loop().call_soon(self._read_on)
        elif self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()

    def _read_on(self) -> None:
        if self._is_paused or not self._is_open or self._is_closing:
            return
        self._decrypt(b"")
        if self._transport is not None and not (self._is_paused or self.is_closing()):
            self._transport.resume_reading()

    # ---- writing ----

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Encrypt all bytes and pass them to the transport.

        If the socket does not accept all bytes, the rest waits in the transport.
        """
        if self._is_closing or self._ssl is None:
            return
        view = memoryview(data)
        position, size = 0, len(view)
        while position < size:
            try:
                position += self._ssl.write(view[position : position + _WRITE_BYTES])
            except ssl.SSLError as error:
                self._fail(TlsFailure(explain(error, self._is_server, self._server_name)))
                return
            finally:
                self._flush()

    def _flush(self) -> None:
        """Take everything that OpenSSL has written out of the shared BIO, and send it."""
        encrypted = _scratch.outgoing.read()
        if encrypted and self._transport is not None and not self._transport.is_closing():
            self._transport.write(encrypted)

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Set the limits of the plain transport. They apply to bytes that are already encrypted."""
        assert self._transport is not None
        self._transport.set_write_buffer_limits(high, low)

    def get_write_buffer_size(self) -> int:
        return 0 if self._transport is None else self._transport.get_write_buffer_size()

    # ---- lifecycle ----

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """Return the same values as asyncio, except for `socket`, with which a caller could bypass
        the encryption.
        """
        if name == "ssl_object":
            return self._ssl
        if name == "sslcontext":
            return self._context
        if name == "socket" or self._transport is None:
            return default
        return self._transport.get_extra_info(name, default)

    def is_closing(self) -> bool:
        return self._is_closing or self._transport is None or self._transport.is_closing()

    def close(self) -> None:
        """Announce the end to the peer. Close the connection when all bytes are sent, without
        waiting for a reply.
        """
        if self._is_closing:
            return
        self._is_closing = True
        if self._ssl is not None and self._is_open:
            try:
                self._ssl.unwrap()
            # WantRead: the peer has not ended yet; other errors: no alert is possible
            except ssl.SSLError:
                pass
            finally:
                _scratch.incoming.read()
                self._flush()
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """Close the connection immediately. Bytes that have not been sent are dropped."""
        self._is_closing = True
        if self._transport is not None:
            self._transport.abort()

    def _fail(self, failure: Exception) -> None:
        """End the connection for this reason. Any alert to the peer has already been written."""
        if self._is_closing:
            return
        self._failure = failure
        self._is_closing = True
        if self._transport is None:
            return
        if self._transport.get_write_buffer_size():
            # otherwise, a peer that does not read would keep the connection open
            self._transport.abort()
        else:
            self._transport.close()
