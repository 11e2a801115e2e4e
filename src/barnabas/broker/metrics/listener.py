"""Answers `GET /metrics` over HTTP, for Prometheus, and nothing else (`barnabas.metrics.port`).

One request per connection: it is answered when its head is complete, and the connection closed.
Since any client may connect, all is bounded: the size of a head, the time from the first byte to
the last, the number of connections at once. The page is rendered for each request, on the broker's
loop.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import re
import socket
from collections.abc import Callable
from typing import cast

from barnabas.errors import ConfigError
from barnabas.metrics import CONTENT_TYPE

_log = logging.getLogger(__name__)

MOST_HEAD_BYTES = 8192
MOST_CONNECTIONS = 16
_LONGEST_S = 10.0

_END_OF_HEAD = re.compile(rb"\r?\n\r?\n")
_REQUEST_LINE = re.compile(rb"([A-Za-z]+) ([!-~]+) HTTP/1\.[0-9]\r?")
_METRICS = re.compile(rb"(?:[Hh][Tt][Tt][Pp]://[^/?]*)?/metrics(?:\?.*)?")

_PLAIN = "text/plain; charset=utf-8"


class MetricsListener:
    """Serves one address. Call `bind` and then `start` once each; `close` at any time."""

    def __init__(self, page: Callable[[], bytes], longest_s: float = _LONGEST_S) -> None:
        """`page` renders the metrics; `longest_s`: the time that a connection may take."""
        self.page = page
        self.longest_s = longest_s
        self.connections: set[asyncio.Transport] = set()
        self._server: asyncio.Server | None = None

    @property
    def port(self) -> int:
        assert self._server is not None, "it has not been bound"
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def bind(self, host: str, port: int) -> None:
        """Bind the address, an empty host being all; clients that connect wait for `start`.

        It listens from here on: two sockets can be bound to one port until one of them listens.
        Raises ConfigError.
        """
        loop = asyncio.get_running_loop()
        try:
            sock = _listening(host, port)
        except OSError as error:
            raise ConfigError(
                f"barnabas.metrics.port: {host or '*'}:{port} cannot be bound "
                f"({bind_reason(error)}); choose another port, or 0 for none"
            ) from None
        self._server = await loop.create_server(
            lambda: _Connection(self), sock=sock, start_serving=False
        )

    async def start(self) -> None:
        """Begin to answer requests."""
        assert self._server is not None, "it has not been bound"
        await self._server.start_serving()
        _log.info("metrics are served on port %d at /metrics", self.port)

    def close(self) -> None:
        """Stop answering, and close all connections."""
        if self._server is not None:
            self._server.close()
        for transport in list(self.connections):
            transport.abort()


def _listening(host: str, port: int) -> socket.socket:
    if not host and socket.has_dualstack_ipv6():
        try:
            return socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True)
        except OSError as error:
            if error.errno != errno.EADDRNOTAVAIL:  # IPv6 is compiled in, but switched off here
                raise
    found = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    family, _, _, _, address = min(found, key=lambda each: each[0] != socket.AF_INET)
    return socket.create_server(cast(tuple[str, int], address), family=family)


def bind_reason(error: OSError) -> str:
    """The system's text alone: `create_server` appends the address."""
    return str(error.strerror or error).partition(" (while ")[0]


class _Connection(asyncio.Protocol):
    """One request and its answer."""

    __slots__ = ("_deadline", "_head", "_is_answered", "_listener", "_transport")

    _transport: asyncio.Transport
    _deadline: asyncio.TimerHandle

    def __init__(self, listener: MetricsListener) -> None:
        self._listener = listener
        self._head = bytearray()
        self._is_answered = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport = cast(asyncio.Transport, transport)  # uvloop's is none of it
        connections = self._listener.connections
        self._is_answered = len(connections) >= MOST_CONNECTIONS
        connections.add(transport)
        loop = asyncio.get_running_loop()
        self._deadline = loop.call_later(self._listener.longest_s, transport.abort)
        if self._is_answered:
            transport.abort()

    def connection_lost(self, error: Exception | None) -> None:
        self._deadline.cancel()
        self._listener.connections.discard(self._transport)

    def data_received(self, data: bytes) -> None:
        # After the answer, data is read until the client closes: to close with unread data would
        # reset the connection, and the answer with it.
        if self._is_answered:
            return
        self._head += data
        line, newline, _ = self._head.partition(b"\n")
        if not line[:1].isalpha() or (newline and not _REQUEST_LINE.fullmatch(line)):
            self._refuse("400 Bad Request", "not an HTTP request")
        elif len(self._head) > MOST_HEAD_BYTES:
            self._refuse(
                "431 Request Header Fields Too Large", f"the limit is {MOST_HEAD_BYTES} bytes"
            )
        elif _END_OF_HEAD.search(self._head):
            self._answer(line)

    def _answer(self, line: bytes | bytearray) -> None:
        request = _REQUEST_LINE.fullmatch(line)
        assert request is not None, "the line was checked"
        method, target = request.groups()
        if not _METRICS.fullmatch(target):
            self._refuse("404 Not Found", "only /metrics is served")
        elif method != b"GET":
            self._refuse("405 Method Not Allowed", "only GET is supported", "Allow: GET\r\n")
        else:
            self._send("200 OK", CONTENT_TYPE, self._listener.page())

    def _refuse(self, status: str, reason: str, header: str = "") -> None:
        self._send(status, _PLAIN, f"{reason}\n".encode(), header)

    def _send(self, status: str, content_type: str, body: bytes, header: str = "") -> None:
        self._is_answered = True
        self._head.clear()
        head = (
            f"HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\n"
            f"Content-Length: {len(body)}\r\nConnection: close\r\n{header}\r\n"
        )
        self._transport.write(head.encode() + body)
        self._transport.write_eof()
