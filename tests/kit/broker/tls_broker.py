"""Brokers with a TLS listener beside a plain one, and clients of the former."""

from __future__ import annotations

import socket
import ssl
from typing import Any

from barnabas import Broker
from tests.kit.certificates import PemFiles
from tests.kit.raw_client import PATIENCE_S, RawClient

LISTENERS = "PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:0"


def secured(files: PemFiles, **others: str) -> dict[str, Any]:
    """A broker's settings; names of `others` have underscores for dots."""
    return {
        "listeners": LISTENERS,
        **files.settings(),
        **{name.replace("_", "."): value for name, value in others.items()},
    }


def tls_address(broker: Broker) -> str:
    (port,) = (each.port for each in broker.server.listeners if each.protocol.uses_tls)
    return f"127.0.0.1:{port}"


def options(files: PemFiles, *, has_certificate: bool = True, **others: str) -> dict[str, Any]:
    """Options of our clients, whose attempts end soon."""
    return {
        "security.protocol": "SSL",
        "default.api.timeout.ms": 3000,
        **(files.settings() if has_certificate else files.trust()),
        **others,
    }


class TlsRawClient(RawClient):
    """A RawClient that has shaken hands with Python's own TLS."""

    def __init__(self, address: str, context: ssl.SSLContext) -> None:
        super().__init__(address, PATIENCE_S)
        self.socket: socket.socket = context.wrap_socket(self.socket, server_hostname="127.0.0.1")

    @property
    def certificate(self) -> bytes:
        """The broker's, in DER."""
        assert isinstance(self.socket, ssl.SSLSocket)
        return self.socket.getpeercert(binary_form=True) or b""


def python_context(files: PemFiles, *, has_certificate: bool = True) -> ssl.SSLContext:
    """Python's own client."""
    context = ssl.create_default_context(cafile=str(files.truststore))
    if has_certificate:
        context.load_cert_chain(files.chain, files.key)
    return context
