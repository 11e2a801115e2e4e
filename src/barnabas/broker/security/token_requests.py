"""Determines which clients are allowed to request delegation tokens (KIP-48)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.security.delegation_tokens import DelegationTokens
from barnabas.errors import DelegationTokenRequestNotAllowed
from barnabas.security.acl import ANONYMOUS

if TYPE_CHECKING:
    from barnabas.broker.context import Context


def tokens_for(context: Context) -> DelegationTokens:
    """Return the tokens for a client that has authenticated by any means other than a token.

    Raises DelegationTokenRequestNotAllowed.
    """
    client = context.client
    # KIP-48: a token must not be used to obtain another token, because access would then never end.
    # ANONYMOUS has not authenticated.
    if client.by_token or client.principal == ANONYMOUS:
        raise DelegationTokenRequestNotAllowed
    node = context.node
    return DelegationTokens(node.store, node.config, node.clock, node.known_tokens)
