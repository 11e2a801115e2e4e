"""DescribeDelegationToken (key 41): list the tokens that the client owns, can renew or may see."""

from __future__ import annotations

from functools import partial

from barnabas.broker.context import Context
from barnabas.broker.outcome import Outcome
from barnabas.broker.security.delegation_tokens import (
    DelegationTokens,
    is_owner_or_renewer,
    principal,
)
from barnabas.broker.security.token_requests import tokens_for
from barnabas.cluster.token_nodes import TokenNode
from barnabas.errors import KafkaError
from barnabas.protocol.messages.describe_delegation_token import (
    DescribedDelegationToken,
    DescribedDelegationTokenRenewer,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from barnabas.security.acl import Operation, Principal, ResourceType


def handle(context: Context, request: DescribeDelegationTokenRequest) -> Outcome:
    return _describe(context, request)


async def _describe(
    context: Context, request: DescribeDelegationTokenRequest
) -> DescribeDelegationTokenResponse:
    owners = None
    if request.owners is not None:
        owners = [Principal(each.principal_type, each.principal_name) for each in request.owners]
    try:
        tokens = tokens_for(context)
        tokens.check_enabled()
        # An empty list matches no owner, and null matches all owners.
        if owners == []:
            return DescribeDelegationTokenResponse()
        found = await tokens.all(partial(_is_shown, context, owners))
    except KafkaError as error:
        return DescribeDelegationTokenResponse(error_code=error.code)
    return DescribeDelegationTokenResponse(tokens=[_description(tokens, each) for each in found])


def _is_shown(context: Context, owners: list[Principal] | None, token: TokenNode) -> bool:
    """Return whether the client asked for the token and may see it, including its secret."""
    if owners is not None and not any(is_owner_or_renewer(token, each) for each in owners):
        return False
    return (
        # Owners and renewers need no ACL. Other users need DESCRIBE on the token, or
        # DESCRIBE_TOKENS on its owner (KIP-373).
        is_owner_or_renewer(token, context.client.principal)
        or context.allowed_to(Operation.DESCRIBE, ResourceType.DELEGATION_TOKEN, token.token_id)
        or context.allowed_to(Operation.DESCRIBE_TOKENS, ResourceType.USER, token.owner)
    )


def _description(tokens: DelegationTokens, token: TokenNode) -> DescribedDelegationToken:
    owner, requester = principal(token.owner), principal(token.requester)
    return DescribedDelegationToken(
        principal_type=owner.kind,
        principal_name=owner.name,
        token_requester_principal_type=requester.kind,
        token_requester_principal_name=requester.name,
        issue_timestamp=token.issued_at_ms,
        expiry_timestamp=token.expires_at_ms,
        max_timestamp=token.ends_at_ms,
        token_id=token.token_id,
        hmac=tokens.secret(token.token_id),
        renewers=[
            DescribedDelegationTokenRenewer(principal_type=each.kind, principal_name=each.name)
            for each in map(principal, token.renewers)
        ],
    )
