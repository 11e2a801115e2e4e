"""Creates the TLS context for the connections of a client, and recreates it if a file changes."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Callable
from functools import lru_cache

from barnabas.errors import ConfigError
from barnabas.net.connection import Connection
from barnabas.net.tls_transport import TlsTransport
from barnabas.security.file_stamps import stamps_of
from barnabas.security.tls import client_context
from barnabas.security.tls_settings import TlsSettings

_log = logging.getLogger(__name__)

_CLIENTS_KEPT = 16  # different configurations kept per process


class ClientTls:
    """Provides the TLS context for new connections of a client."""

    __slots__ = ("_context", "_seen", "_settings")

    def __init__(self, settings: TlsSettings) -> None:
        """Load the files. Raises ConfigError, which names the setting."""
        self._settings = settings
        self._seen = stamps_of(settings.files)
        self._context = client_context(settings)

    @property
    def context(self) -> ssl.SSLContext:
        """The current context. It is recreated if a file has changed.

        If this fails, the failure is logged and the old context remains in use.
        """
        stamps = stamps_of(self._settings.files)
        if stamps != self._seen:
            # Record the new state before the attempt, so that unusable files are logged once, not
            # for each connection.
            self._seen = stamps
            try:
                self._context = client_context(self._settings)
            except ConfigError as error:
                _log.error("keeping the previous certificate: %s", error)
        return self._context


@lru_cache(maxsize=_CLIENTS_KEPT)
def client_tls(settings: TlsSettings) -> ClientTls:
    """Return the same object for equal settings, because loading a truststore is slow."""
    return ClientTls(settings)


async def dial_tls(
    make: Callable[[], Connection], address: str, port: int, tls: ClientTls, *, server_name: str
) -> Connection:
    """Connect over TCP with a TLS handshake. Raises OSError or ConfigError."""
    connection = make()
    transport = TlsTransport(connection, tls.context, server_name=server_name)
    try:
        await asyncio.get_running_loop().create_connection(lambda: transport, address, port)
        await transport.handshake()
    except BaseException:
        transport.abort()
        raise
    return connection
