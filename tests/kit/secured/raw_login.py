"""TLS and a log-in for clients that speak frames."""

from __future__ import annotations

import socket
import ssl
from typing import TYPE_CHECKING, Any

from barnabas.broker.security.secure_setup import ADMIN, MECHANISM
from barnabas.protocol.api import SASL_AUTHENTICATE, SASL_HANDSHAKE
from barnabas.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from barnabas.protocol.messages.sasl_handshake import SaslHandshakeRequest
from barnabas.security.scram import ScramClient
from tests.kit.secured.suite import suite

if TYPE_CHECKING:
    from tests.kit.raw_client import RawClient


def encrypted(connected: socket.socket) -> ssl.SSLSocket:
    return suite().tls.wrap_socket(connected, server_hostname="127.0.0.1")


def log_in(client: RawClient) -> None:
    """As the administrator."""
    hello: Any = client.call(SASL_HANDSHAKE, 1, SaslHandshakeRequest(mechanism=MECHANISM))
    assert hello.error_code == 0, hello
    scram = ScramClient(MECHANISM, ADMIN, suite().setup.passwords[ADMIN])
    message: bytes | None = scram.first()
    while message is not None:
        sent = SaslAuthenticateRequest(auth_bytes=message)
        answer = client.call(SASL_AUTHENTICATE, 2, sent)
        assert answer.error_code == 0, answer.error_message
        message = scram.respond(bytes(answer.auth_bytes))
