"""CreateDelegationToken (key 38): create a token for the client or for another user (KIP-373)."""

from __future__ import annotations

from barnabas.broker.context import Context
from barnabas.broker.outcome import Outcome
from barnabas.broker.security.token_requests import tokens_for
from barnabas.errors import (
    DelegationTokenAuthorizationFailed,
    InvalidPrincipalType,
    KafkaError,
)
from barnabas.protocol.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from barnabas.security.acl import Operation, Principal, ResourceType

_USER = "User"


def handle(context: Context, request: CreateDelegationTokenRequest) -> Outcome:
    return _create(context, request)


async def _create(
    context: Context, request: CreateDelegationTokenRequest
) -> CreateDelegationTokenResponse:
    requester = owner = context.client.principal
    if request.owner_principal_name:
        owner = Principal(request.owner_principal_type or "", request.owner_principal_name)
    response = CreateDelegationTokenResponse(
        principal_type=owner.kind,
        principal_name=owner.name,
        token_requester_principal_type=requester.kind,
        token_requester_principal_name=requester.name,
        issue_timestamp_ms=-1,
        expiry_timestamp_ms=-1,
        max_timestamp_ms=-1,
    )
    try:
        tokens = tokens_for(context)
        # KIP-373: to create a token for another user, a client needs CREATE_TOKENS on that user. To
        # create a token for itself, it needs no permission.
        if owner != requester and not context.allowed_to(
            Operation.CREATE_TOKENS, ResourceType.USER, str(owner)
        ):
            raise DelegationTokenAuthorizationFailed
        renewers = [
            Principal(each.principal_type, each.principal_name) for each in request.renewers
        ]
        # The request includes a principal type, but Kafka accepts only `User`.
        if any(each.kind != _USER for each in (owner, *renewers)):
            raise InvalidPrincipalType
        lifetime_ms, random = request.max_lifetime_ms, context.node.random
        token = await tokens.create(owner, requester, renewers, lifetime_ms, random)
    except KafkaError as error:
        response.error_code = error.code
        return response
    response.issue_timestamp_ms = token.issued_at_ms
    response.expiry_timestamp_ms = token.expires_at_ms
    response.max_timestamp_ms = token.ends_at_ms
    response.token_id = token.token_id
    response.hmac = tokens.secret(token.token_id)
    return response
