"""Requests from plain values: what is nested in a message need not name its classes."""

from __future__ import annotations

from typing import Any

from barnabas.protocol.api import Api
from barnabas.protocol.codec import Message
from barnabas.protocol.wire import Array


def request(api: Api, values: dict[str, Any]) -> Message:
    return _built(api.request, values)


def _built(cls: type[Message], values: dict[str, Any]) -> Message:
    types = {each.name: each.type for each in cls.fields}
    return cls(**{name: _value(types[name], value) for name, value in values.items()})


def _value(wire_type: Any, value: Any) -> Any:
    if isinstance(wire_type, Array) and value is not None:
        return [_value(wire_type.element, each) for each in value]
    if isinstance(wire_type, type) and issubclass(wire_type, Message):
        return _built(wire_type, value)
    return value
