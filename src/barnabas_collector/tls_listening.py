"""Creates TLS contexts for listeners, and counts failed handshakes."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from barnabas.errors import ConfigError
from barnabas_collector.collector_metrics import CollectorMetrics
from barnabas_collector.tally import Tally


class TlsFiles(NamedTuple):
    """Lists the PEM files of a listener. `key` is None if the key is in the certificate's file.
    With `client_authority`, senders need a certificate from this authority.
    """

    certificate: Path
    key: Path | None = None
    client_authority: Path | None = None


def tls_context(files: TlsFiles, what: str) -> ssl.SSLContext:
    """Return a listener's TLS context. `what` names the listener's protocol. Raises
    `ConfigError`."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2  # RFC 9662
    # Syslog senders never read. Closing a connection with unread tickets would reset it, and the
    # last messages would be lost.
    context.num_tickets = 0
    certificate, key, client_authority = files
    try:
        # Without a password function, OpenSSL prompts for an encrypted key's password on the
        # terminal.
        context.load_cert_chain(certificate, key, password=str)
    except (OSError, ValueError) as error:
        paths = (certificate,) if key is None else (certificate, key)
        raise _unusable("certificate and key", what, paths, error) from None
    if client_authority is not None:
        context.verify_mode = ssl.CERT_REQUIRED
        try:
            context.load_verify_locations(client_authority)
        except (OSError, ValueError) as error:
            raise _unusable("authority of the senders", what, (client_authority,), error) from None
    return context


def _unusable(part: str, what: str, paths: Sequence[Path], error: Exception) -> ConfigError:
    if isinstance(error, OSError) and not isinstance(error, ssl.SSLError):
        why = error.strerror or str(error)
    else:
        why = (
            "the key does not match the certificate or is encrypted, or a file is not in PEM format"
        )
        why = f"{getattr(error, 'reason', None) or error} ({why})"
    shown = " and ".join(map(str, paths))
    return ConfigError(f"cannot use the {part} for {what} over TLS, {shown}: {why}")


class FailedHandshakes:
    """Counts and logs a listener's failed handshakes."""

    def __init__(self, where: str, metrics: CollectorMetrics | None) -> None:
        self._metrics = metrics
        self._tally = Tally(f"TLS handshake failed on {where}", f"TLS handshakes failed on {where}")

    def watch(self, context: ssl.SSLContext) -> None:
        """Watch all connections that use a context.

        An event loop itself does not report failed handshakes.
        """
        on_failed = self._on_failed
        context.sslobject_class = type(
            "_Watched", (_Watched,), {"on_failed": staticmethod(on_failed)}
        )

    def log_rest(self) -> None:
        self._tally.log_rest()

    def _on_failed(self, why: str) -> None:
        self._tally.add(1, why)
        if self._metrics is not None:
            self._metrics.handshakes_failed.increment()


class _Watched(ssl.SSLObject):
    on_failed: Callable[[str], None]

    def do_handshake(self) -> None:
        try:
            super().do_handshake()
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            raise
        except ssl.SSLError as error:
            self.on_failed(error.reason or str(error))
            raise
