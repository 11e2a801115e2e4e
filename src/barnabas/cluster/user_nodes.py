"""Nodes of users in the metadata tree: quotas and SCRAM credentials, by the encoded name.

    /config/users/<user>       {"version":1,"config":{"SCRAM-SHA-256":"salt=...,stored_key=..."}}
    /config/users/<default>    quotas of all other users

A name is URL-encoded as Java does it, with %20 for a space, so that a user may have any name.
"""

from __future__ import annotations

from urllib.parse import quote, unquote

from barnabas.cluster.config_changes import DEFAULT

USER_CONFIGS = "/config/users"

_AS_IT_IS = "*-._"


def encoded_user(name: str) -> str:
    """The name of a user's node."""
    # Java leaves `*` and encodes `~`, Python the reverse; Kafka encodes the former by itself.
    return quote(name, safe=_AS_IT_IS).replace("*", "%2A").replace("~", "%7E")


def decoded_user(node: str) -> str | None:
    """The user of a node; None for that of all others."""
    return None if node == DEFAULT else unquote(node)


def user_path(name: str) -> str:
    return f"{USER_CONFIGS}/{encoded_user(name)}"
