"""Rejects SaslAuthenticate (key 36) on a listener without SASL or after authentication.

`network.sasl_gate` handles the request during authentication.
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
