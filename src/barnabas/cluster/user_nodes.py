"""Encodes and decodes user nodes, which contain quotas and SCRAM credentials.

    /config/users              {"version":1,"decoy_key":"..."} (no data in Kafka)
    /config/users/<user>       {"version":1,"config":{"SCRAM-SHA-256":"salt=...,stored_key=..."}}
    /config/users/<default>    quotas of all other users

User names are URL-encoded in the same way as in Java, with %20 for a space, so a name may contain
any character. The decoy key is stored in base64, and determines the salt that a client receives if
its user does not exist. It must be the same on all brokers and stay the same after a restart;
otherwise, a client could find out which users exist.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from urllib.parse import quote, unquote

from barnabas.cluster.config_changes import DEFAULT
from barnabas.errors import CorruptData

USER_CONFIGS = "/config/users"

_AS_IT_IS = "*-._"


def encode_decoy_key(key: bytes) -> bytes:
    return json.dumps({"version": 1, "decoy_key": b64encode(key).decode()}).encode()


def decode_decoy_key(data: bytes | None) -> bytes | None:
    """Return the decoy key stored in the data of /config/users, if any. Raises CorruptData."""
    if not data:
        return None
    try:
        return b64decode(json.loads(data)["decoy_key"], validate=True)
    except (ValueError, KeyError, TypeError):
        raise CorruptData(f"{USER_CONFIGS} has data other than a decoy key") from None


def encoded_user(name: str) -> str:
    """Return the name of the node for a user."""
    # Java encodes `~` but not `*`, and Python does the opposite. Kafka also encodes `*`.
    return quote(name, safe=_AS_IT_IS).replace("*", "%2A").replace("~", "%7E")


def decoded_user(node: str) -> str | None:
    """Return the user whose node this is, or None for the node that applies to all other users."""
    # `<default>` is never a user, because the brackets in a user name would be encoded.
    return None if node == DEFAULT else unquote(node)


def user_path(name: str) -> str:
    return f"{USER_CONFIGS}/{encoded_user(name)}"
