"""Hypothesis strategies for every message that the API table has, in every version."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from barnabas.protocol.api import APIS
from barnabas.protocol.message import Field, Message, WireType
from barnabas.protocol.wire import (
    BOOLEAN,
    BYTES,
    FLOAT64,
    RECORDS,
    STRING,
    UUID,
    Array,
    Primitive,
)

MESSAGES: list[type[Message]] = [
    cls for api in APIS.values() for cls in (api.request, api.response)
]
VERSIONS: dict[type[Message], range] = {
    cls: range(api.min_version, api.max_version + 1)
    for api in APIS.values()
    for cls in (api.request, api.response)
}

Values = Callable[[Field], st.SearchStrategy[Any] | None]
"""May say what a field shall hold; None leaves it to its type."""

_TEXT = st.text(max_size=8) | st.just("é" * 70)  # 70 characters, 140 bytes: a two-byte varint
_BINARY = st.binary(max_size=12) | st.just(bytes(range(256)) * 70)  # a three-byte varint


def messages(
    cls: type[Message], version: int, values: Values = lambda made: None
) -> st.SearchStrategy[Message]:
    """Messages that `version` can carry: fields that it lacks keep their defaults."""
    chosen = {}
    for made in cls.fields:
        if version in made.versions:
            strategy = values(made)
            if strategy is None:
                strategy = _of_type(made.type, version, values)
            if version in made.nullable:
                strategy = st.none() | strategy
            if made.tag is not None:  # mostly absent, as on the wire
                strategy = st.just(made.default) | strategy
            chosen[made.name] = strategy
    return st.builds(cls, **chosen)


def _of_type(wire_type: WireType, version: int, values: Values) -> st.SearchStrategy[Any]:
    if isinstance(wire_type, Array):
        return st.lists(_of_type(wire_type.element, version, values), max_size=3)
    if not isinstance(wire_type, Primitive):
        return messages(wire_type, version, values)
    if wire_type is BOOLEAN:
        return st.booleans()
    if wire_type is FLOAT64:
        return st.floats(allow_nan=False)
    if wire_type is UUID:
        return st.binary(min_size=16, max_size=16)
    if wire_type is STRING:
        return _TEXT
    if wire_type is BYTES or wire_type is RECORDS:
        return _BINARY
    bits = wire_type.size * 8
    signed = wire_type.format.islower()
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    return st.integers(low, high)


ANY_VERSION: dict[type[Message], st.SearchStrategy[tuple[Message, int]]] = {
    cls: st.one_of(*(st.tuples(messages(cls, v), st.just(v)) for v in VERSIONS[cls]))
    for cls in MESSAGES
}
"""(message, a version that can carry it) of each class."""
