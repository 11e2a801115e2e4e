"""Answers the HTTP requests (`GET` and `HEAD`) that Prometheus and probes send.

The listener is used by brokers (`barnabas.metrics.port`) and by the collector.

    /metrics   all families of the registry
    /healthz   200 as long as the process responds
    /readyz    200 when it is ready, otherwise 503 and a reason

Each connection serves a single request. When the head of the request is complete, the request is
answered and the connection is closed. Any client may connect, so there are limits on the size of a
head, on the time from the first byte to the last, and on the number of connections. The page is
rendered for each request, in slices on the event loop of the process.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import re
import socket
from collections.abc import Awaitable, Callable
from typing import cast

from barnabas.config.metrics_ports import METRICS_PORT
from barnabas.errors import ConfigError
from barnabas.net.metrics_page import CONTENT_TYPE

_log = logging.getLogger(__name__)

MOST_HEAD_BYTES = 8192
MOST_CONNECTIONS = 16
_LONGEST_S = 10.0

_END_OF_HEAD = re.compile(rb"\r?\n\r?\n")
_REQUEST_LINE = re.compile(rb"([A-Za-z]+) ([!-~]+) HTTP/1\.[0-9]\r?")
_PATH = re.compile(rb"(?:[Hh][Tt][Tt][Pp]://[^/?]*)?/(metrics|healthz|readyz)(?:\?.*)?")

_PLAIN = "text/plain; charset=utf-8"


class MetricsListener:
    """Listens on one address.

    Call `bind` once and then `start` once. `close` may be called at any time.
    """

    def __init__(
        self,
        page: Callable[[], Awaitable[bytes]],
        unready: Callable[[], str],
        longest_s: float = _LONGEST_S,
    ) -> None:
        """`page` renders the metrics. `unready` returns the reason why the process is not ready, or
        "" if it is.

        `longest_s` is the maximum duration of a connection.
        """
        self.page = page
        self.unready = unready
        self.longest_s = longest_s
        self.connections: set[asyncio.Transport] = set()
        self._server: asyncio.Server | None = None

    @property
    def port(self) -> int:
        assert self._server is not None, "it has not been bound"
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def bind(self, host: str, port: int, option: str = METRICS_PORT) -> None:
        """Bind the address. If the host is empty, all addresses are bound.

        Clients may connect already, but have to wait for `start`. `option` is the name of the
        option that contains the port.

        The socket starts to listen immediately, because two sockets can be bound to the same port
        until one of them listens. Raises ConfigError.
        """
        loop = asyncio.get_running_loop()
        try:
            sock = _listening(host, port)
        except OSError as error:
            raise ConfigError(
                f"{option}: {host or '*'}:{port}: cannot bind "
                f"({bind_reason(error)}); choose another port, or 0 to disable metrics"
            ) from None
        self._server = await loop.create_server(
            lambda: _Connection(self), sock=sock, start_serving=False
        )

    async def start(self) -> None:
        """Start to answer requests."""
        assert self._server is not None, "it has not been bound"
        await self._server.start_serving()
        _log.info(
            "serving metrics on port %d at /metrics and probes at /healthz and /readyz", self.port
        )

    def close(self) -> None:
        """Stop answering requests, and close all connections."""
        if self._server is not None:
            self._server.close()
        for transport in list(self.connections):
            transport.abort()


def _listening(host: str, port: int) -> socket.socket:
    if not host and socket.has_dualstack_ipv6():
        try:
            return socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True)
        except OSError as error:
            if error.errno != errno.EADDRNOTAVAIL:  # IPv6 is supported, but disabled here
                raise
    found = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    family, _, _, _, address = min(found, key=lambda each: each[0] != socket.AF_INET)
    return socket.create_server(cast(tuple[str, int], address), family=family)


def bind_reason(error: OSError) -> str:
    """Return the system's error message without the address that `create_server` appends to it."""
    return str(error.strerror or error).partition(" (while ")[0]


class _Connection(asyncio.Protocol):
    """Represents a connection with one request and the response to it."""

    __slots__ = (
        "_deadline",
        "_has_body",
        "_has_ended",
        "_head",
        "_is_answered",
        "_listener",
        "_rendering",
        "_transport",
    )

    _transport: asyncio.Transport
    _deadline: asyncio.TimerHandle

    def __init__(self, listener: MetricsListener) -> None:
        self._listener = listener
        self._head = bytearray()
        self._is_answered = False
        self._has_body = True
        self._has_ended = False
        self._rendering: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transport is not a subclass
        self._transport = transport = cast(asyncio.Transport, transport)
        connections = self._listener.connections
        self._is_answered = len(connections) >= MOST_CONNECTIONS
        connections.add(transport)
        loop = asyncio.get_running_loop()
        self._deadline = loop.call_later(self._listener.longest_s, transport.abort)
        if self._is_answered:
            transport.abort()

    def connection_lost(self, error: Exception | None) -> None:
        self._deadline.cancel()
        if self._rendering is not None:
            self._rendering.cancel()
        self._listener.connections.discard(self._transport)

    def eof_received(self) -> bool:
        # The client may close its side of the connection after the request. Send the response
        # nevertheless.
        self._has_ended = True
        return self._rendering is not None and not self._rendering.done()

    def data_received(self, data: bytes) -> None:
        # After the response, read until the client closes the connection. If it were closed with
        # unread data, it would be reset, and the response could be lost.
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
        found = _PATH.fullmatch(target)
        self._has_body = method != b"HEAD"
        if found is None:
            self._refuse("404 Not Found", "only /metrics, /healthz and /readyz are served")
        elif method not in (b"GET", b"HEAD"):
            self._refuse(
                "405 Method Not Allowed", "only GET and HEAD are supported", "Allow: GET, HEAD\r\n"
            )
        elif found[1] == b"metrics":
            self._is_answered = True  # further data is ignored while the response is rendered
            self._rendering = asyncio.get_running_loop().create_task(self._render())
        elif found[1] == b"readyz" and (reason := self._listener.unready()):
            self._refuse("503 Service Unavailable", f"not ready: {reason}")
        else:
            self._send("200 OK", _PLAIN, b"ready\n" if found[1] == b"readyz" else b"ok\n")

    async def _render(self) -> None:
        page = await self._listener.page()
        if not self._transport.is_closing():
            self._send("200 OK", CONTENT_TYPE, page)
            if self._has_ended:
                self._transport.close()

    def _refuse(self, status: str, reason: str, header: str = "") -> None:
        self._send(status, _PLAIN, f"{reason}\n".encode(), header)

    def _send(self, status: str, content_type: str, body: bytes, header: str = "") -> None:
        self._is_answered = True
        self._head.clear()
        head = (
            f"HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\n"
            f"Content-Length: {len(body)}\r\nConnection: close\r\n{header}\r\n"
        )
        self._transport.write(head.encode() + (body if self._has_body else b""))
        self._transport.write_eof()
