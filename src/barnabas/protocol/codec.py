"""Encodes and decodes messages, without copying byte fields.

    encode(message, version) -> parts: bytes, views and FileSlices to be written one after another
    decode(cls, data, version) -> message, whose byte fields are views of `data`

For each (class, version), a straight-line function is compiled at first use (`encoder`, `decoder`)
and stored with the class. `interpreter` is a slow equivalent, with which tests compare the results.

Any bytes yield a message or CorruptData. The codec does not check whether a message makes sense:
absurd values of a valid type are accepted.
"""

from __future__ import annotations

import struct
from typing import Any, Protocol, TypeVar

from barnabas.errors import CorruptData
from barnabas.protocol.message import Message, field
from barnabas.protocol.wire import ANY_ENTRIES, TooManyEntries
from barnabas.types import Part

__all__ = [
    "Decoder",
    "Message",
    "decode",
    "decode_prefix",
    "decoder",
    "encode",
    "encode_after",
    "field",
]

M = TypeVar("M", bound=Message)
M_co = TypeVar("M_co", bound=Message, covariant=True)


def encode(message: Message, version: int) -> list[Part]:
    """Return the message's bytes as non-empty parts.

    Raises ValueError for a value that the version cannot represent.
    """
    return encode_after(bytearray(), message, version)


def encode_after(head: bytearray, message: Message, version: int) -> list[Part]:
    """Encode a message after `head`, the first part. Raises the errors of `encode`."""
    compiled = message.codecs.get(("encode", version))
    if compiled is None:
        compiled = _compile(type(message), version, "encode")
    try:
        parts: list[Part] = compiled(message, head)
    except (struct.error, TypeError, AttributeError) as error:
        # A wrong type or an integer out of range is the caller's error.
        name = type(message).__name__
        raise ValueError(f"{name} version {version} cannot be encoded: {error}") from error
    return parts


def decode(cls: type[M], data: memoryview | bytes | bytearray, version: int) -> M:
    """Decode the message that fills `data` exactly. Raises only CorruptData."""
    message, end = decoder(cls, version)(memoryview(data))
    # In a response or in data on disk, leftover bytes mean that something was misread.
    if end != len(data):
        raise CorruptData(f"{cls.__name__} version {version}: {len(data) - end} bytes follow it")
    return message


def decode_prefix(cls: type[M], data: memoryview | bytes | bytearray, version: int) -> M:
    """Decode the message at the start of `data`, and ignore the rest. Raises CorruptData.

    Kafka reads requests in this way, and librdkafka relies on it: its Metadata requests in versions
    above 10 end in three bytes that belong to older versions.
    """
    return decoder(cls, version)(memoryview(data))[0]


class Decoder(Protocol[M_co]):
    """Decodes messages of one class and version."""

    def __call__(self, data: memoryview, most_entries: int = ANY_ENTRIES) -> tuple[M_co, int]:
        """Return the message and its end. `most_entries` limits the total entries in its arrays.

        Raises only CorruptData or, for too many entries, its subclass TooManyEntries.
        """
        ...


def decoder(cls: type[M], version: int) -> Decoder[M]:
    """Return the decoder of this version, for callers that decode many messages."""
    compiled: Decoder[M]
    compiled = cls.codecs.get(("decode", version)) or _compile(cls, version, "decode")
    return compiled


def _compile(cls: type[Message], version: int, what: str) -> Any:
    compiled: Any
    if what == "encode":
        from barnabas.protocol.encoder import compile_encoder

        compiled = compile_encoder(cls, version)
    else:
        from barnabas.protocol.decoder import compile_decoder

        compiled = _guard(cls, version, compile_decoder(cls, version))
    cls.codecs[what, version] = compiled
    return compiled


def _guard(cls: type[M], version: int, compiled: Any) -> Decoder[M]:
    """Wrap the straight-line function, converting all of its errors to CorruptData."""

    def decode_one(data: memoryview, most_entries: int = ANY_ENTRIES) -> tuple[M, int]:
        try:
            decoded: tuple[M, int] = compiled(data, most_entries)
        except TooManyEntries:
            raise TooManyEntries(
                f"{cls.__name__} version {version} has more than {most_entries} entries"
            ) from None
        except (struct.error, IndexError) as error:
            raise CorruptData(
                f"{cls.__name__} version {version} is truncated at {len(data)} bytes"
            ) from error
        except (CorruptData, UnicodeDecodeError) as error:
            raise CorruptData(f"{cls.__name__} version {version}: {error}") from error
        # Skipped bytes can extend past the end without a failed read.
        if decoded[1] > len(data):
            raise CorruptData(f"{cls.__name__} version {version} is truncated at {len(data)} bytes")
        return decoded

    return decode_one
