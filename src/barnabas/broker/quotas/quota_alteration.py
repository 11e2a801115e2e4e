"""Finds an entity's stored quotas and edits them for AlterClientQuotas.

The checks and error messages are the same as in Kafka, except that quotas that Kafka accepts but
cannot apply are also rejected.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from ipaddress import ip_address
from math import isfinite
from typing import NamedTuple

from barnabas.broker.configs.config_edit import Edit
from barnabas.broker.quotas.client_quotas import FETCH, KINDS, MUTATION, PRODUCE, REQUEST
from barnabas.broker.quotas.entity import IPS, Entity, encode_name
from barnabas.broker.quotas.ip_quotas import CONNECTION_RATE
from barnabas.broker.quotas.quota_filter import CLIENT_ID, IP, USER
from barnabas.errors import InvalidRequest

_TYPES = (USER, CLIENT_ID, IP)
_WHOLE = {
    PRODUCE: ("LONG", 2**63 - 1),
    FETCH: ("LONG", 2**63 - 1),
    CONNECTION_RATE: ("INT", 2**31 - 1),
}
_FRACTIONS = (REQUEST, MUTATION)
_EPSILON = 1e-6


class Change(NamedTuple):
    """A quota that will be set, or removed if the value is None."""

    key: str
    value: float | None


def path_of(parts: Sequence[tuple[str, str | None]]) -> str:
    """Return the entity's path relative to `/config`, given the types and names of its parts.

    The name None refers to the default. Raises InvalidRequest.
    """
    if not parts:
        raise InvalidRequest("Invalid empty client quota entity")
    names: dict[str, str] = {}
    for entity_type, name in parts:
        if entity_type not in _TYPES:
            raise InvalidRequest(f"Unhandled client quota entity type: {entity_type}")
        if name == "":
            raise InvalidRequest(f"Empty {entity_type} not supported")
        names[entity_type] = encode_name(name)
    if IP not in names:
        return Entity(names.get(USER, ""), names.get(CLIENT_ID, "")).path
    if len(names) > 1:
        raise InvalidRequest(
            "Invalid quota entity combination, IP entity should not be used with user/client ID "
            "entity."
        )
    _check_address(dict(parts)[IP])
    return f"{IPS}/{names[IP]}"


def _check_address(name: str | None) -> None:
    """Reject host names. Kafka accepts them, but they would have to be looked up repeatedly."""
    if name is None:
        return
    try:
        ip_address(name)
    except ValueError:
        raise InvalidRequest(f"{encode_name(name)} is not a valid IP or resolvable host.") from None


def edit_of(path: str, changes: Sequence[Change]) -> Edit:
    """Return the edit for the entity's node. The edit raises InvalidRequest."""
    keys = (CONNECTION_RATE,) if path.startswith(f"{IPS}/") else KINDS

    def edit(current: Mapping[str, str]) -> dict[str, str]:
        wanted = dict(current)
        for key, value in changes:
            if value is not None:
                if key not in keys:
                    raise InvalidRequest(f"Invalid configuration key {key}")
                wanted[key] = _text(key, value)
            elif key in keys:  # all settings except a user's credentials
                wanted.pop(key, None)
        return wanted

    return edit


def _text(key: str, value: float) -> str:
    """Return the value in the notation that Kafka uses."""
    if not isfinite(value):
        raise InvalidRequest(f"Configuration {key} must be a number")
    if key in _FRACTIONS:
        return _java_double(value)
    kind, most = _WHOLE[key]
    # The values on the wire are doubles. As in Kafka, a double that is this close to a whole number
    # is treated as that number.
    whole = int(value + _EPSILON)
    if abs(whole - value) > _EPSILON or whole > most:
        raise InvalidRequest(f"Configuration {key} must be a {kind} value")
    return str(whole)


def _java_double(value: float) -> str:
    """Format a number as Java does, in the range where Java uses no exponent.

    Outside that range, format it as Python does, which Java can read as well.
    """
    return repr(float(value)).replace("e+", "E").replace("e", "E")
