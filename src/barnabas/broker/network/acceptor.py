"""Accepts connections from one listening socket, as fast as the limits allow.

asyncio's `create_server` cannot be used here, because it would accept and then drop new connections
when a limit is reached. They must stay in the kernel's backlog instead.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from typing import TYPE_CHECKING

from barnabas.broker.network.connections import UNTIL_ONE_CLOSES, Connections
from barnabas.net.connection import Address

if TYPE_CHECKING:
    from barnabas.broker.network.router import Router
    from barnabas.broker.security.server_tls import ServerTls

_log = logging.getLogger(__name__)

_MOST_THROTTLED = 1_000  # throttled connections held open, which take a file descriptor each
_PER_WAKE = 64  # connections accepted before other sockets get a turn
_PAUSE_AFTER_ERROR_MS = 1000  # without file descriptors, an immediate retry would fail too


class Acceptor:
    """Accepts connections from one listening socket, from `start` until `close`."""

    def __init__(
        self,
        listening: socket.socket,
        listener: str,
        router: Router,
        connections: Connections,
        tls: ServerTls | None = None,
    ) -> None:
        """`tls` performs the TLS handshake. If it is None, connections are not encrypted."""
        self._socket = listening
        self._tls = tls
        self._listener = listener
        self._router = router
        self._connections = connections
        self._loop = asyncio.get_running_loop()
        self._is_accepting = False
        self._timer: asyncio.TimerHandle | None = None
        self._adopting: dict[asyncio.Task[None], None] = {}  # handshakes to cancel, in order
        self._throttled: dict[socket.socket, asyncio.TimerHandle] = {}  # until they are closed
        self._is_closed = False
        self._has_failed = False  # True once the failure has been logged
        connections.add_listener(self._on_freed)

    def start(self) -> None:
        if not self._is_accepting and not self._is_closed:
            self._is_accepting = True
            self._timer = None
            self._loop.add_reader(self._socket.fileno(), self._readable)

    def close(self) -> None:
        """Stop accepting connections. Connections that have already been accepted belong to the
        router and stay open.
        """
        self._is_closed = True
        self._pause(UNTIL_ONE_CLOSES)
        if self._timer is not None:
            self._timer.cancel()
        for task in self._adopting:
            task.cancel()
        for accepted, timer in self._throttled.items():
            timer.cancel()
            accepted.close()
        self._throttled.clear()
        self._socket.close()

    def _on_freed(self) -> None:
        if self._timer is None:
            self.start()

    def _pause(self, wait_ms: int) -> None:
        if self._is_accepting:
            self._is_accepting = False
            self._loop.remove_reader(self._socket.fileno())
        if wait_ms != UNTIL_ONE_CLOSES:
            self._timer = self._loop.call_later(wait_ms / 1000, self.start)

    def _readable(self) -> None:
        for number in range(_PER_WAKE):
            wait_ms = self._connections.wait_ms(self._listener)
            if wait_ms:
                # After a connection has been accepted, there may be no other connection. If there
                # is one, this method is called again.
                if number == 0:
                    self._connections.on_delayed(self._listener)
                    self._pause(wait_ms)
                return
            try:
                # Accept one connection at a time, so that it is counted before the next one is
                # allowed.
                accepted, address = self._socket.accept()
            # No connection is waiting, or the client gave up.
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if not self._has_failed:
                    _log.error("listener %s cannot accept connections: %s", self._listener, error)
                self._has_failed = True
                self._pause(_PAUSE_AFTER_ERROR_MS)
                return
            self._has_failed = False
            self._admit(accepted, (str(address[0]).removeprefix("::ffff:"), int(address[1])))

    def _admit(self, accepted: socket.socket, address: Address) -> None:
        host = address[0]
        # Close the connection immediately, as Kafka does. If it were left in the backlog, a single
        # address could block all other addresses (max.connections.per.ip).
        refusal = self._connections.refusal(host)
        if refusal is not None:
            self._connections.on_refused(address, refusal)
            accepted.close()
            return
        throttle_ms = self._connections.throttle_ms(host)
        if throttle_ms:
            self._connections.on_throttled(host, throttle_ms)
            # If the connection were closed immediately, the client would try again at once
            # (KIP-612).
            self._close_later(accepted, throttle_ms)
            return
        self._connections.on_opened(self._listener, host)
        accepted.setblocking(False)
        # A machine that crashes sends no FIN, so crashes are detected with keepalive probes.
        accepted.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        task = self._loop.create_task(self._adopt(accepted, address))
        self._adopting[task] = None
        task.add_done_callback(self._adopting.pop)

    def _close_later(self, accepted: socket.socket, throttle_ms: int) -> None:
        """Close this connection after the given time without reading from it.

        The client's address opens connections too fast.
        """
        # Throttled connections must not use up all file descriptors.
        if len(self._throttled) >= _MOST_THROTTLED:
            oldest = next(iter(self._throttled))
            self._throttled.pop(oldest).cancel()
            oldest.close()
        self._throttled[accepted] = self._loop.call_later(
            throttle_ms / 1000, self._close_throttled, accepted
        )

    def _close_throttled(self, accepted: socket.socket) -> None:
        del self._throttled[accepted]
        accepted.close()

    async def _adopt(self, accepted: socket.socket, address: Address) -> None:
        connection = self._router.accept(address)
        try:
            if self._tls is None:
                await self._loop.connect_accepted_socket(lambda: connection, accepted)
            else:
                await self._tls.accept(accepted, connection)
        except OSError as error:
            if self._tls is None:
                self._connections.complaints.report(
                    address, "connection lost before its first byte", error, level=logging.INFO
                )
            else:
                self._on_handshake_failed(address, error)
        finally:
            if not connection.was_opened:  # not counted by `connection_closed`
                if self._tls is None:
                    accepted.close()
                self._router.on_open_failed(connection)
                self._connections.on_closed(self._listener, address[0])

    def _on_handshake_failed(self, address: Address, error: OSError) -> None:
        from barnabas.broker.network.failed_logins import FailedLogin  # loaded on first use
        from barnabas.net.tls_failures import TlsFailure, TlsInterrupted

        # As in Kafka, a connection that the client drops is not a failed authentication, because
        # load balancers probe the port by opening and closing connections.
        if isinstance(error, TlsFailure) and not isinstance(error, TlsInterrupted):
            login = FailedLogin(self._listener, address, str(error), is_tls=True)
            self._connections.on_login_failed(login)
        else:
            self._connections.complaints.report(address, "TLS handshake failed", error)
