"""Receives syslog over TCP and over TLS (RFC 5425), and makes senders wait while the brokers accept
no messages."""

from __future__ import annotations

import asyncio
import resource
import ssl
from collections.abc import Callable
from typing import Any, Final, cast

from barnabas_collector.collector_metrics import CollectorMetrics
from barnabas_collector.inbox import Inbox
from barnabas_collector.listen_address import ListenAddress
from barnabas_collector.syslog_framing import SyslogFraming
from barnabas_collector.syslog_messages import SyslogMessages
from barnabas_collector.tally import Tally
from barnabas_collector.tls_listening import FailedHandshakes

MOST_CONNECTIONS: Final = 1_000
IDLE_S: Final = 60.0
"""If too many connections are open, one that has been silent for this long may be closed for a new
one. Otherwise, silent connections stay open, because a sender notices a closed connection only when
it sends its next message, which is then lost.
"""
_HANDSHAKE_S: Final = 10.0


class SyslogTcp:
    """Manages a listener and its connections. `on_listening` is called with the address of the
    listener.
    """

    def __init__(
        self,
        address: ListenAddress,
        host: str,
        on_listening: Callable[[str], None],
        tls: ssl.SSLContext | None = None,
        metrics: CollectorMetrics | None = None,
    ) -> None:
        self.host = host
        self._tls = tls
        self._address = address
        self._on_listening = on_listening
        self._connections: dict[_Connection, None] = {}  # the one idle longest is first
        self._most = min(MOST_CONNECTIONS, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2)
        self._refused = Tally(
            "connection was rejected: too many are open and none is idle",
            "connections were rejected: too many are open and none is idle",
        )
        self._handshakes = FailedHandshakes(f"the syslog port {address.port}", metrics)
        if tls is not None:
            self._handshakes.watch(tls)
        self._resuming: asyncio.Task[None] | None = None
        self._inbox: Inbox  # set by `run`

    async def run(self, inbox: Inbox, stopping: asyncio.Event) -> None:
        """Listen until `stopping` is set. Raises `ConfigError` if the address is unavailable."""
        self._inbox = inbox
        loop = asyncio.get_running_loop()
        protocol = "tcp" if self._tls is None else "tls"
        with self._address.errors(f"syslog on {protocol}"):
            server = await loop.create_server(
                lambda: _Connection(self, inbox),
                *self._address,
                backlog=self._most,
                ssl=self._tls,
                ssl_handshake_timeout=None if self._tls is None else _HANDSHAKE_S,
            )
        self._on_listening(f"{protocol} {self._address.shown(server.sockets[0].getsockname())}")
        try:
            await stopping.wait()
        finally:
            server.close()
            for connection in list(self._connections):
                connection.end()
            if self._resuming is not None:
                self._resuming.cancel()
            self._refused.log_rest()
            self._handshakes.log_rest()

    def admits(self, connection: _Connection) -> bool:
        """Add a connection. If there are too many, it replaces the connection that has been idle
        the longest. Return False if there is no room."""
        if len(self._connections) >= self._most:
            # Connections are ordered by the time of their last data (`on_received`).
            oldest = next(iter(self._connections))
            if oldest.idle_s() < IDLE_S:
                self._refused.add(1)
                return False
            oldest.end()
        self._connections[connection] = None
        if self._resuming is not None:
            connection.pause()
        return True

    def on_received(self, connection: _Connection) -> None:
        """Record that a connection received data."""
        if connection in self._connections:
            del self._connections[connection]
            self._connections[connection] = None  # now behind those idle for longer
        # TCP's flow control makes the senders wait.
        if self._inbox.is_full and self._resuming is None:
            for each in self._connections:
                each.pause()
            self._resuming = asyncio.create_task(self._resume())

    def on_ended(self, connection: _Connection) -> None:
        self._connections.pop(connection, None)

    async def _resume(self) -> None:
        await self._inbox.room()
        self._resuming = None
        for each in self._connections:
            each.resume()


class _Connection(asyncio.Protocol):
    def __init__(self, listener: SyslogTcp, inbox: Inbox) -> None:
        self._listener = listener
        self._inbox = inbox
        self._framing = SyslogFraming()
        self._now_s = asyncio.get_running_loop().time
        self._received_at_s = self._now_s()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        peer: Any = transport.get_extra_info("peername")
        self._messages = SyslogMessages(peer[0] if peer else "", self._listener.host)
        if not self._listener.admits(self):
            self._transport.abort()

    def data_received(self, data: bytes) -> None:
        self._received_at_s = self._now_s()
        self._inbox.add(self._messages.of(self._framing.cut(data)))
        self._listener.on_received(self)

    def connection_lost(self, error: Exception | None) -> None:
        self._inbox.add(self._messages.of(self._framing.last()))
        self._listener.on_ended(self)

    def idle_s(self) -> float:
        return self._now_s() - self._received_at_s

    def pause(self) -> None:
        if not self._transport.is_closing():
            self._transport.pause_reading()

    def resume(self) -> None:
        if not self._transport.is_closing():
            self._transport.resume_reading()

    def end(self) -> None:
        """End the connection. An incomplete frame becomes a message."""
        self._inbox.add(self._messages.of(self._framing.last()))
        self._listener.on_ended(self)
        self._transport.abort()
