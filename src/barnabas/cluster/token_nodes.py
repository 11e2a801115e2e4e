"""Encodes and decodes delegation token nodes (KIP-48), in the format of Kafka 3.9.

    /delegation_token/tokens/<id>                   {"version":3,"owner":"User%3Aalice",...}
    /delegation_token/token_changes/token_change_n  the id of a token that has changed

The secret of a token is not stored. It is computed from the token id and a key that is shared by
all brokers.
"""

from __future__ import annotations

import json
from typing import NamedTuple
from urllib.parse import unquote

from barnabas.cluster.user_nodes import encoded_user
from barnabas.errors import CorruptData

ROOT = "/delegation_token"
TOKENS = f"{ROOT}/tokens"
CHANGES = f"{ROOT}/token_changes"
CHANGE_PREFIX = f"{CHANGES}/token_change_"
BASE_PATHS = (ROOT, CHANGES, TOKENS)


class TokenNode(NamedTuple):
    """The content of a token's node. Principals are text, such as `User:alice`."""

    token_id: str
    owner: str
    requester: str
    renewers: tuple[str, ...]
    issued_at_ms: int
    ends_at_ms: int  # the token's latest possible end
    expires_at_ms: int  # when the token expires unless it is renewed


def token_path(token_id: str) -> str:
    return f"{TOKENS}/{token_id}"


def encode_token(token: TokenNode) -> bytes:
    node = {
        "version": 3,
        "owner": encoded_user(token.owner),
        "tokenRequester": encoded_user(token.requester),
        "renewers": [encoded_user(each) for each in token.renewers],
        "issueTimestamp": token.issued_at_ms,
        "maxTimestamp": token.ends_at_ms,
        "expiryTimestamp": token.expires_at_ms,
        "tokenId": token.token_id,
    }
    return json.dumps(node, separators=(",", ":")).encode()


def decode_token(path: str, data: bytes | None) -> TokenNode:
    """Decode the node of a token. If it is malformed, raises CorruptData with the path."""
    try:
        node = json.loads(data or b"")
        owner = unquote(node["owner"])
        return TokenNode(
            str(node["tokenId"]),
            owner,
            # The requester was added in version 3 (KIP-373). Before that, users could request
            # tokens only for themselves.
            unquote(node["tokenRequester"]) if "tokenRequester" in node else owner,
            tuple(map(unquote, node["renewers"])),
            int(node["issueTimestamp"]),
            int(node["maxTimestamp"]),
            int(node["expiryTimestamp"]),
        )
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptData(f"{path} cannot be read ({error!r}): {data!r}") from None
