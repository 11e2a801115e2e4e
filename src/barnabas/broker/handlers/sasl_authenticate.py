"""Rejects SaslAuthenticate (key 36) if the listener does not use SASL, or after authentication.

During authentication, the request is handled by `network.sasl_gate`.
"""

from __future__ import annotations

from barnabas.broker.context import Context
from barnabas.errors import IllegalSaslState
from barnabas.protocol.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)


def handle(context: Context, request: SaslAuthenticateRequest) -> SaslAuthenticateResponse:
    return SaslAuthenticateResponse(
        error_code=IllegalSaslState.code,
        error_message="SaslAuthenticate request received after successful authentication",
    )
