"""Implements the formatters of `kafka-console-consumer.sh`. Their output is identical to Kafka's.
Pure.

CreateTime:1700000000000<TAB>Partition:0<TAB>Offset:0<TAB>NO_HEADERS<TAB>key<TAB>value
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import Final

from barnabas.cli.kafka.options import BadCommandLine
from barnabas.cli.kafka.tool import NotCovered
from barnabas.client.consumer.fetched import ConsumerRecord

Text = Callable[[bytes], bytes]
"""Formats a key, a value or a header."""
Layout = Callable[[ConsumerRecord], bytes]

_NUMBERS: Final = {"LongDeserializer": ">q", "IntegerDeserializer": ">i", "ShortDeserializer": ">h"}
_AS_THEY_ARE: Final = ("StringDeserializer", "ByteArrayDeserializer")
_SWITCHES: Final = {
    "print.timestamp": False,
    "print.partition": False,
    "print.offset": False,
    "print.headers": False,
    "print.key": False,
    "print.value": True,
}
"""The optional parts of a line, in output order."""
_TEXTS: Final = ("key.separator", "line.separator", "headers.separator", "null.literal")
_DESERIALIZERS: Final = ("key.deserializer", "value.deserializer", "headers.deserializer")


def default_layout(properties: Mapping[str, str]) -> Layout:
    """Return the equivalent of Kafka's DefaultMessageFormatter with these properties. Raises
    NotCovered or BadCommandLine.
    """
    # Reject unknown properties. Kafka ignores them, so a mistyped name silently has no effect.
    _check(properties)
    wanted = [name for name, default in _SWITCHES.items() if _is_set(properties, name, default)]
    between = _bytes(properties, "key.separator", "\t")
    ending = _bytes(properties, "line.separator", "\n")
    null = _bytes(properties, "null.literal", "null")
    commas = _bytes(properties, "headers.separator", ",")
    key, value, header = (deserializer(properties.get(name)) for name in _DESERIALIZERS)

    def text(data: bytes | None, read: Text) -> bytes:
        # null.literal replaces null keys, values and headers (KIP-431).
        return null if data is None else read(data)

    def headers(record: ConsumerRecord) -> bytes:
        pairs = (name.encode() + b":" + text(each, header) for name, each in record.headers)
        # Kafka prints a word instead of an empty list.
        return commas.join(pairs) if record.headers else b"NO_HEADERS"

    parts: dict[str, Layout] = {
        "print.timestamp": _timestamp,
        "print.partition": lambda record: b"Partition:%d" % record.partition,
        "print.offset": lambda record: b"Offset:%d" % record.offset,
        "print.headers": headers,
        "print.key": lambda record: text(record.key, key),
        "print.value": lambda record: text(record.value, value),
    }
    shown = [parts[name] for name in wanted]
    return lambda record: between.join([part(record) for part in shown]) + ending


def nothing(record: ConsumerRecord) -> bytes:
    """Print nothing, like Kafka's NoOpMessageFormatter."""
    return b""


def deserializer(class_name: str | None) -> Text:
    """Return a function that formats bytes like this deserializer. Raises NotCovered if unknown."""
    # Recognise Kafka's classes by their simple names, in any package.
    own = (class_name or _AS_THEY_ARE[0]).rpartition(".")[2]
    if own in _AS_THEY_ARE:
        return bytes
    if own not in _NUMBERS:
        raise NotCovered(
            f"{class_name}: Java classes cannot be run; use one of "
            f"{', '.join((*_AS_THEY_ARE, *_NUMBERS))}"
        )
    form = struct.Struct(_NUMBERS[own])

    def number(data: bytes) -> bytes:
        if len(data) != form.size:
            raise BadCommandLine(
                f"Size of data received by {own} is not {form.size}: leave out the deserializer, "
                "or --skip-message-on-error"
            )
        return str(form.unpack(data)[0]).encode()

    return number


def _timestamp(record: ConsumerRecord) -> bytes:
    # Messages in the first format (magic 0) have no timestamp.
    if record.timestamp_ms < 0:
        return b"NO_TIMESTAMP"
    kind = b"LogAppendTime" if record.timestamp_type else b"CreateTime"
    return b"%s:%d" % (kind, record.timestamp_ms)


def _check(properties: Mapping[str, str]) -> None:
    known = (*_SWITCHES, *_TEXTS, *_DESERIALIZERS)
    for name in properties:
        # `key.deserializer.x` configures the deserializer itself, but these deserializers have no
        # configs.
        if name not in known and not name.startswith(tuple(f"{each}." for each in _DESERIALIZERS)):
            raise BadCommandLine(f"--property {name}: not one of {', '.join(known)}")


def _is_set(properties: Mapping[str, str], name: str, default: bool) -> bool:
    text = properties.get(name)
    return default if text is None else text.strip().lower() == "true"


def _bytes(properties: Mapping[str, str], name: str, default: str) -> bytes:
    return properties.get(name, default).encode("utf-8", "surrogateescape")
