"""Encodes and decodes messages. Byte fields are not copied.

    encode(message, version) -> parts: bytes, views and FileSlices to be written one after another
    decode(cls, data, version) -> message, whose byte fields are views of `data`

For each combination of class and version, a function without branches for the version is compiled
on first use (`encoder`, `decoder`) and stored with the class. `interpreter` does the same more
slowly, and tests compare the results.

Any bytes are either decoded into a message or raise CorruptData. The codec does not check whether a
message makes sense: it accepts every value that has the right type.
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
    """Encode the message. The result is a list of parts, none of which is empty.

    Raises ValueError if a value cannot be sent in this version.
    """
    return encode_after(bytearray(), message, version)


def encode_after(head: bytearray, message: Message, version: int) -> list[Part]:
    """Encode a message.

    The first part of the result starts with `head`. Raises the same errors as `encode`.
    """
    compiled = message.codecs.get(("encode", version))
    if compiled is None:
        compiled = _compile(type(message), version, "encode")
    try:
        parts: list[Part] = compiled(message, head)
    except (struct.error, TypeError, AttributeError) as error:
        # The caller has passed a value of the wrong type or an integer that is out of range.
        name = type(message).__name__
        raise ValueError(f"{name} version {version} cannot be encoded: {error}") from error
    return parts


def decode(cls: type[M], data: memoryview | bytes | bytearray, version: int) -> M:
    """Decode a message that occupies all of `data`. Raises only CorruptData."""
    message, end = decoder(cls, version)(memoryview(data))
    # If a response or data on disk has bytes left over, something was not read correctly.
    if end != len(data):
        raise CorruptData(f"{cls.__name__} version {version}: {len(data) - end} bytes follow it")
    return message


def decode_prefix(cls: type[M], data: memoryview | bytes | bytearray, version: int) -> M:
    """Decode the message at the start of `data`, and ignore what follows it. Raises CorruptData.

    Kafka reads requests in the same way, and librdkafka relies on this: at the end of its Metadata
    requests in versions above 10, there are three bytes that only older versions have.
    """
    return decoder(cls, version)(memoryview(data))[0]


class Decoder(Protocol[M_co]):
    """Decodes messages of one class in one version."""

    def __call__(self, data: memoryview, most_entries: int = ANY_ENTRIES) -> tuple[M_co, int]:
        """Return the message and the position of its end.

        Its arrays may have at most `most_entries` in total.

        Raises only CorruptData. If there are too many entries, raises its subclass TooManyEntries.
        """
        ...


def decoder(cls: type[M], version: int) -> Decoder[M]:
    """Return the decoder for this version, for callers that decode many messages."""
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
    """Wrap the compiled function, so that all of its errors become CorruptData."""

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
        # When bytes are skipped, nothing is read, so the position may be after the end.
        if decoded[1] > len(data):
            raise CorruptData(f"{cls.__name__} version {version} is truncated at {len(data)} bytes")
        return decoded

    return decode_one
