"""What of an answer depends on access: error codes, names that are shown, authorized operations."""

from __future__ import annotations

from typing import Any

from barnabas.protocol.codec import Message

_NAMES = {
    "name",
    "topic",
    "topic_name",
    "group_id",
    "transactional_id",
    "key",
    "resource_name",
    "principal",
    "principal_name",
    "token_requester_principal_name",
    "user",
    "host",
}
_OF_PLACES = {"brokers", "node_endpoints", "configs", "supported_features", "api_keys"}
"""Lists that say where things are, or what there is, and not what may be seen."""


def findings(answer: Message) -> Any:
    """A comparable form; lists in an order of their own."""
    found: dict[str, Any] = {}
    for field in answer.fields:
        name, value = field.name, getattr(answer, field.name)
        if name in _OF_PLACES:
            continue
        if isinstance(value, list):
            nested = [findings(each) for each in value if isinstance(each, Message)]
            if nested:
                found[name] = sorted(nested, key=repr)
        elif isinstance(value, Message):
            if inner := findings(value):
                found[name] = inner
        elif name.endswith(("error_code", "authorized_operations")) or name in _NAMES:
            found[name] = value
    return found
