"""SaslHandshake (key 17) out of place: without SASL, or on a session that never ends.

Those that begin an authentication go to `network.sasl_gate`.
"""

from __future__ import annotations

from barnabas.broker.context import Context
from barnabas.errors import IllegalSaslState
from barnabas.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse


def handle(context: Context, request: SaslHandshakeRequest) -> SaslHandshakeResponse:
    return SaslHandshakeResponse(error_code=IllegalSaslState.code)
