"""RenewDelegationToken (key 39): extend the expiry time of a token."""

from __future__ import annotations

from barnabas.broker.context import Context
from barnabas.broker.outcome import Outcome
from barnabas.broker.security.token_requests import tokens_for
from barnabas.errors import KafkaError
from barnabas.protocol.messages.renew_delegation_token import (
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)


def handle(context: Context, request: RenewDelegationTokenRequest) -> Outcome:
    return _renew(context, request)


async def _renew(
    context: Context, request: RenewDelegationTokenRequest
) -> RenewDelegationTokenResponse:
    # The request identifies the token by its HMAC, not by its id.
    who, secret = context.client.principal, bytes(request.hmac)
    try:
        expires_at_ms = await tokens_for(context).renew(who, secret, request.renew_period_ms)
    except KafkaError as error:
        return RenewDelegationTokenResponse(error_code=error.code, expiry_timestamp_ms=-1)
    return RenewDelegationTokenResponse(expiry_timestamp_ms=expires_at_ms)
