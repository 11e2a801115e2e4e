"""The rule of which clients may ask for delegation tokens (KIP-48)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.security.delegation_tokens import DelegationTokens
from barnabas.errors import DelegationTokenRequestNotAllowed
from barnabas.security.acl import ANONYMOUS

if TYPE_CHECKING:
    from barnabas.broker.context import Context


def tokens_for(context: Context) -> DelegationTokens:
    """The tokens, for a client who has proved who it is, and not by a token.

    Raises DelegationTokenRequestNotAllowed.
    """
    client = context.client
    # KIP-48: by a token no other one can be had, or access would have no end. ANONYMOUS has proved
    # nothing.
    if client.by_token or client.principal == ANONYMOUS:
        raise DelegationTokenRequestNotAllowed
    node = context.node
    return DelegationTokens(node.store, node.config, node.clock, node.known_tokens)
