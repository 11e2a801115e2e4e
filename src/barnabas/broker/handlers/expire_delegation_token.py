"""ExpireDelegationToken (key 40): expire a token, or change its expiry time."""

from __future__ import annotations

from barnabas.broker.context import Context
from barnabas.broker.outcome import Outcome
from barnabas.broker.security.token_requests import tokens_for
from barnabas.errors import KafkaError
from barnabas.protocol.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)


def handle(context: Context, request: ExpireDelegationTokenRequest) -> Outcome:
    return _expire(context, request)


async def _expire(
    context: Context, request: ExpireDelegationTokenRequest
) -> ExpireDelegationTokenResponse:
    # The request identifies the token by its HMAC, not by its id.
    who, secret = context.client.principal, bytes(request.hmac)
    try:
        expires_at_ms = await tokens_for(context).expire(who, secret, request.expiry_time_period_ms)
    except KafkaError as error:
        return ExpireDelegationTokenResponse(error_code=error.code, expiry_timestamp_ms=-1)
    return ExpireDelegationTokenResponse(expiry_timestamp_ms=expires_at_ms)
