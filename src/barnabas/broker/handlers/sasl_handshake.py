"""Rejects SaslHandshake (key 17) if the listener does not use SASL, or in a session that does not
expire.

A request that begins an authentication is handled by `network.sasl_gate`.
"""

from __future__ import annotations

from barnabas.broker.context import Context
from barnabas.errors import IllegalSaslState
from barnabas.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse


def handle(context: Context, request: SaslHandshakeRequest) -> SaslHandshakeResponse:
    return SaslHandshakeResponse(error_code=IllegalSaslState.code)
