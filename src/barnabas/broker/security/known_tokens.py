"""Caches the delegation tokens that the broker has read.

A token's owner never changes, but its expiry time does, so the cache is never used to authenticate
clients. It is used only to determine how many tokens a user has and which tokens may have expired
and must be read again.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from barnabas.cluster.loading import children
from barnabas.errors import CorruptData

if TYPE_CHECKING:
    from barnabas.cluster.store import MetadataStore
    from barnabas.cluster.token_nodes import TokenNode

_log = logging.getLogger(__name__)

_AT_ONCE: Final = 500  # the number of nodes in a request


class KnownTokens:
    """The delegation tokens that the broker has read, with the number of tokens per owner."""

    __slots__ = ("_owned", "_tokens")

    def __init__(self) -> None:
        self._tokens: dict[str, TokenNode | None] = {}  # by id, or None if the node cannot be read
        self._owned: Counter[str] = Counter()

    def count(self, owner: str) -> int:
        """Return how many tokens a user has. Tokens that have expired are included."""
        return self._owned[owner]

    def ended_before(self, now_ms: int) -> list[TokenNode]:
        """Return the tokens that have expired, unless they have been renewed since they
        were read.
        """
        return [
            token
            for token in self._tokens.values()
            if token is not None and min(token.ends_at_ms, token.expires_at_ms) < now_ms
        ]

    def learn(self, token_id: str, token: TokenNode | None) -> None:
        """Cache a token whose node has just been read or written."""
        self.forget(token_id)
        self._tokens[token_id] = token
        if token is not None:
            self._owned[token.owner] += 1

    def forget(self, token_id: str) -> None:
        """Remove a token that no longer exists from the cache."""
        token = self._tokens.pop(token_id, None)
        if token is not None:
            self._owned[token.owner] -= 1
            if not self._owned[token.owner]:
                del self._owned[token.owner]

    async def refresh(self, store: MetadataStore) -> None:
        """Read new tokens, and forget tokens that were removed. Raises MetadataError."""
        from barnabas.cluster.token_nodes import TOKENS  # imported with the first token

        names = await children(store, TOKENS)
        # Another broker removed the token, either because it had expired or because a client
        # expired it.
        for token_id in self._tokens.keys() - set(names):
            self.forget(token_id)
        missing = [name for name in names if name not in self._tokens]
        for token_id, token in (await read_tokens(store, missing)).items():
            self.learn(token_id, token)


async def read_tokens(
    store: MetadataStore, token_ids: Sequence[str]
) -> dict[str, TokenNode | None]:
    """Read the tokens that still exist. If a token's node is damaged, the token is None. Raises
    MetadataError.
    """
    from barnabas.cluster.token_nodes import token_path  # imported with the first token

    found = {}
    for start in range(0, len(token_ids), _AT_ONCE):
        some = token_ids[start : start + _AT_ONCE]
        nodes = await store.read_many([token_path(token_id) for token_id in some])
        for token_id, node in zip(some, nodes, strict=True):
            if node is not None:
                found[token_id] = decoded_token(token_id, node.data)
    return found


def decoded_token(token_id: str, data: bytes | None) -> TokenNode | None:
    """Decode a token from its node's data. If the data is damaged, log an error and return None."""
    from barnabas.cluster.token_nodes import decode_token, token_path  # with the first token

    try:
        return decode_token(token_path(token_id), data)
    except CorruptData as error:
        _log.error("ignoring a delegation token: %s", error)
        return None
