"""Finds serializers and deserializers for keys and values, by name or as callables (PR-10).

    value --serializer--> bytes on the wire --deserializer--> value

A null (None) remains null and is never passed to a serializer or deserializer. The formats are the
same as those of Kafka's classes: numbers are big-endian, and a UUID is sent as text.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from operator import index
from types import MappingProxyType
from typing import Any, Final

from barnabas.client.errors import SerializationError
from barnabas.errors import ConfigError

Serializer = Callable[[Any], bytes | None]
Deserializer = Callable[[bytes], Any]

SERIALIZERS: Final = (
    "bytes",
    "string",
    "integer",
    "long",
    "short",
    "float",
    "double",
    "uuid",
    "json",
)
"""The short names of the serializers."""

_CLASSES: Final = MappingProxyType(
    {
        "ByteArray": "bytes",
        "Bytes": "bytes",
        "ByteBuffer": "bytes",
        "String": "string",
        "Integer": "integer",
        "Long": "long",
        "Short": "short",
        "Float": "float",
        "Double": "double",
        "UUID": "uuid",
    }
)
_PACKAGE: Final = "org.apache.kafka.common.serialization."
_JSON_CLASS: Final = "org.apache.kafka.connect.json.Json"
_SHOWN: Final = 60


def serializer(given: object, option: str) -> Serializer | None:
    """Return the serializer for `key.serializer` or `value.serializer`; None keeps bytes unchanged.

    Args:
        given: a name of `SERIALIZERS`, one of Kafka's class names, or a callable that takes a value
            and returns bytes or None.
        option: the option's name, for errors.

    Raises ConfigError for any other value, suggesting the nearest name.
    """
    return _chosen(given, option, "Serializer", _serializers())


def deserializer(given: object, option: str) -> Deserializer | None:
    """Return the deserializer for `key.deserializer` or `value.deserializer`. See `serializer`."""
    return _chosen(given, option, "Deserializer", _deserializers())


def serialize(function: Serializer, value: object, part: str, topic: str) -> bytes | None:
    """Serialize the key or value of a record (`part`). Raises SerializationError."""
    if value is None:
        return None
    try:
        data = function(value)
    except Exception as error:  # the user's serializer may raise anything
        raise SerializationError(
            f"{part} of a record for topic {topic!r}: {_shown(value)} of type {_kind(value)} "
            f"cannot be serialized by {_name(function)}: {error}"
        ) from error
    if data is None or type(data) is bytes:
        return data
    # Copy the bytes, because the serializer may reuse its buffer.
    if isinstance(data, bytes | bytearray | memoryview):
        return bytes(data)
    raise SerializationError(
        f"{part} of a record for topic {topic!r}: the serializer {_name(function)} returned "
        f"{_kind(data)}; it must return bytes or None"
    )


def deserialize(function: Deserializer, data: bytes | None, part: str, place: str) -> Any:
    """Deserialize a record's key or value (`part`). `place` identifies the record in errors."""
    if data is None:
        return None
    try:
        return function(data)
    except Exception as error:  # the user's deserializer may raise anything
        raise SerializationError(
            f"{part} of the record at {place}: {len(data)} bytes, {_shown(data)}, cannot be "
            f"deserialized by {_name(function)}: {error}"
        ) from error


def _chosen(
    given: object, option: str, kind: str, known: Mapping[str, Callable[[Any], Any] | None]
) -> Callable[[Any], Any] | None:
    if callable(given) and not isinstance(given, type):
        return given
    # An instance is required, because calling a class would create an object for each value.
    if isinstance(given, type):
        raise ConfigError(f"{option}: {given.__name__} is a class; give an object that is callable")
    if not isinstance(given, str):
        raise ConfigError(f"{option}: {given!r} is neither a {kind.lower()}'s name nor callable")
    name = _short(given.strip(), kind)
    if name not in known:
        raise ConfigError(f"{option}: {given!r} is not {_offer(name, kind)}")
    return known[name]


def _short(given: str, kind: str) -> str:
    """Return the short name for one of Kafka's class names. Other text is returned unchanged."""
    if given == _JSON_CLASS + kind:
        return "json"
    return _CLASSES.get(given.removeprefix(_PACKAGE).removesuffix(kind), given)


def _offer(name: str, kind: str) -> str:
    from difflib import get_close_matches  # imported only for an error

    last = name.rpartition(".")[2].lower().removesuffix(kind.lower())
    near = get_close_matches(last, SERIALIZERS, n=1)
    hint = f"; did you mean {near[0]}?" if near else ""
    return f"one of {', '.join(SERIALIZERS)}, nor a callable{hint}"


def _serializers() -> dict[str, Serializer | None]:
    return {
        "bytes": None,
        "string": string_serializer,
        "integer": _whole_number(">i", "integer"),
        "long": _whole_number(">q", "long"),
        "short": _whole_number(">h", "short"),
        "float": _real_number(">f", "float"),
        "double": _real_number(">d", "double"),
        "uuid": uuid_serializer,
        "json": json_serializer,
    }


def _deserializers() -> dict[str, Deserializer | None]:
    return {
        "bytes": None,
        "string": string_deserializer,
        "integer": _unpacker(">i", "integer"),
        "long": _unpacker(">q", "long"),
        "short": _unpacker(">h", "short"),
        "float": _unpacker(">f", "float"),
        "double": _unpacker(">d", "double"),
        "uuid": uuid_deserializer,
        "json": json_deserializer,
    }


def string_serializer(value: Any) -> bytes:
    """Encode text as UTF-8."""
    if not isinstance(value, str):
        raise TypeError(f"it takes str, not {_kind(value)}")
    return value.encode()


def string_deserializer(data: bytes) -> str:
    return data.decode()


def uuid_serializer(value: Any) -> bytes:
    """Encode a `uuid.UUID` as its 36 characters."""
    from uuid import UUID  # imported only if used

    if not isinstance(value, UUID):
        raise TypeError(f"it takes uuid.UUID, not {_kind(value)}")
    return str(value).encode()


def uuid_deserializer(data: bytes) -> Any:
    from uuid import UUID

    return UUID(data.decode())


def json_serializer(value: Any) -> bytes:
    """Encode as compact JSON in UTF-8. NaN and infinity are rejected, because JSON lacks them."""
    import json

    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.encode()


def json_deserializer(data: bytes) -> Any:
    import json

    return json.loads(data)


def _whole_number(form: str, name: str) -> Serializer:
    layout = struct.Struct(form)
    limit = 1 << (8 * layout.size - 1)

    def pack(value: Any) -> bytes:
        if isinstance(value, bool):
            # bool is an int in Python, but surely a mistake
            raise TypeError("it takes int, not bool")
        number = index(value)
        if not -limit <= number < limit:
            raise ValueError(f"it takes {-limit} to {limit - 1} ({layout.size} bytes)")
        return layout.pack(number)

    pack.__qualname__ = f"{name}_serializer"
    return pack


def _real_number(form: str, name: str) -> Serializer:
    layout = struct.Struct(form)

    def pack(value: Any) -> bytes:
        if isinstance(value, bool | str):
            raise TypeError(f"it takes float, not {_kind(value)}")
        return layout.pack(value)

    pack.__qualname__ = f"{name}_serializer"
    return pack


def _unpacker(form: str, name: str) -> Deserializer:
    layout = struct.Struct(form)

    def unpack(data: bytes) -> Any:
        if len(data) != layout.size:
            raise ValueError(f"it takes {layout.size} bytes")
        return layout.unpack(data)[0]

    unpack.__qualname__ = f"{name}_deserializer"
    return unpack


def _name(function: Callable[..., Any]) -> str:
    return getattr(function, "__qualname__", None) or _kind(function)


def _shown(value: object) -> str:
    try:
        text = repr(value)
    except Exception:  # raised by the user's class, or for a number with too many digits
        return "a value"
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def _kind(value: object) -> str:
    return type(value).__name__
