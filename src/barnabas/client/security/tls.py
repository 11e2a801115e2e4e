"""TLS of a client: made once for all of its connections, again when one of its files changes."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

from barnabas.errors import ConfigError
from barnabas.net.connection import Connection
from barnabas.net.tls_transport import TlsTransport
from barnabas.security.tls import client_context
from barnabas.security.tls_settings import TlsSettings

_log = logging.getLogger(__name__)

_CLIENTS_KEPT = 16  # with different settings, in one process


class ClientTls:
    """The context of connections that begin now."""

    __slots__ = ("_changed_at_ns", "_context", "_settings")

    def __init__(self, settings: TlsSettings) -> None:
        """Raises ConfigError, which names the setting."""
        self._settings = settings
        self._changed_at_ns = self._last_change_ns()
        self._context = client_context(settings)

    @property
    def context(self) -> ssl.SSLContext:
        """Made again if a file has changed; if that fails it is logged, and the old one stays."""
        changed_at_ns = self._last_change_ns()
        if changed_at_ns != self._changed_at_ns:
            self._changed_at_ns = changed_at_ns
            try:
                self._context = client_context(self._settings)
            except ConfigError as error:
                _log.error("the old certificate stays in use: %s", error)
        return self._context

    def _last_change_ns(self) -> tuple[int, ...]:
        times = []
        for path in self._settings.files:
            try:
                times.append(Path(path).stat().st_mtime_ns)
            except OSError:
                times.append(0)
        return tuple(times)


@lru_cache(maxsize=_CLIENTS_KEPT)
def client_tls(settings: TlsSettings) -> ClientTls:
    """The same for the same settings: to read a truststore takes some milliseconds."""
    return ClientTls(settings)


async def dial_tls(
    make: Callable[[], Connection], host: str, port: int, tls: ClientTls
) -> Connection:
    """Connect over TCP and shake hands; raises OSError, ConfigError."""
    connection = make()
    transport = TlsTransport(connection, tls.context, server_name=host)
    try:
        await asyncio.get_running_loop().create_connection(lambda: transport, host, port)
        await transport.handshake()
    except BaseException:
        transport.abort()
        raise
    return connection
