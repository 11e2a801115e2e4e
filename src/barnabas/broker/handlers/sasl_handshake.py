"""SaslHandshake (key 17) at the wrong time: without SASL, or in a session that never ends.

Requests that begin an authentication go to `network.sasl_gate`.
"""

from __future__ import annotations

from barnabas.broker.context import Context
from barnabas.errors import IllegalSaslState
from barnabas.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse


def handle(context: Context, request: SaslHandshakeRequest) -> SaslHandshakeResponse:
    return SaslHandshakeResponse(error_code=IllegalSaslState.code)
