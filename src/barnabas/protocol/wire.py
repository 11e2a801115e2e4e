"""Defines the primitive types of Kafka's wire protocol, and its variable-length integers.

    INT16         2 bytes, big-endian, like all fixed-size numbers  UUID    16 bytes
    UVARINT       7 bits per byte, lowest first, bit 7 = more follow; at most 5 bytes and below 2^32
                      300 = 10101100 00000010
    STRING        INT16 length, UTF-8                flexible: UVARINT length + 1, UTF-8
    BYTES/RECORDS INT32 length, bytes                flexible: UVARINT length + 1, bytes
    Array         INT32 count, elements              flexible: UVARINT count + 1, elements
    null          length or count -1                 flexible: 0
    tagged fields (flexible only, KIP-482)  UVARINT count, then for each field
                                            UVARINT tag, UVARINT size, `size` bytes

This module contains the constants for these layouts, and the slow cases of the compiled codec
(numbers of more than one byte, and unknown tags).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from barnabas.errors import CorruptData
from barnabas.types import FileSlice, Part

if TYPE_CHECKING:
    from barnabas.protocol.message import Message

ANY_ENTRIES: Final = 1 << 62
"""Effectively no limit, because each entry of a list takes at least one byte of the message."""

MAX_STRING_BYTES: Final = 0x7FFF
"""The maximum length of a string.

Kafka applies it to compact strings as well, although their format allows longer ones.
"""


class TooManyEntries(CorruptData):
    """Raised if the lists in a message have more entries in total than the reader accepts."""


Records = memoryview | bytes | bytearray | FileSlice | Sequence[Part]
"""The value of a RECORDS field. It is decoded as a view of the frame; any buffer can be encoded."""


class Primitive:
    """A primitive type. `format` is its code in `struct`, or empty if its size varies."""

    __slots__ = ("default", "format", "name", "size")

    def __init__(self, name: str, layout: str, size: int, default: Any) -> None:
        self.name = name
        self.format = layout
        self.size = size  # in bytes; 0 if it varies
        self.default = default

    def __repr__(self) -> str:
        return self.name


class Array:
    """An array of elements of the same type, such as `Array(INT32)`. It can have any length."""

    __slots__ = ("element",)

    def __init__(self, element: Primitive | type[Message]) -> None:
        self.element = element

    def __repr__(self) -> str:
        name = self.element.name if isinstance(self.element, Primitive) else self.element.__name__
        return f"Array({name})"


BOOLEAN: Final = Primitive("BOOLEAN", "?", 1, False)
INT8: Final = Primitive("INT8", "b", 1, 0)
INT16: Final = Primitive("INT16", "h", 2, 0)
INT32: Final = Primitive("INT32", "i", 4, 0)
INT64: Final = Primitive("INT64", "q", 8, 0)
UINT16: Final = Primitive("UINT16", "H", 2, 0)
UINT32: Final = Primitive("UINT32", "I", 4, 0)
FLOAT64: Final = Primitive("FLOAT64", "d", 8, 0.0)
UUID: Final = Primitive("UUID", "16s", 16, bytes(16))
STRING: Final = Primitive("STRING", "", 0, "")
BYTES: Final = Primitive("BYTES", "", 0, b"")
RECORDS: Final = Primitive("RECORDS", "", 0, None)


def rest_of_uvarint(data: memoryview, position: int, first: int) -> tuple[int, int]:
    """Read the rest of a number whose first byte has bit 7 set.

    Return the number and the next position.

    Raises CorruptData if there are more than five bytes or if the value is 2^32 or more, and
    IndexError if the data ends too early.
    """
    value = first & 0x7F
    for shift in (7, 14, 21, 28):
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value >> 32:
                break
            return value, position
    raise CorruptData(f"a varint that ends at byte {position} exceeds 32 bits")


def rest_of_string_length(data: memoryview, position: int, first: int) -> tuple[int, int]:
    """Read the rest of the length + 1 of a compact string. See `rest_of_uvarint`."""
    value, position = rest_of_uvarint(data, position, first)
    # A compact length could be up to 4 GiB, but in the older form, the length is an INT16.
    if value - 1 > MAX_STRING_BYTES:
        raise CorruptData(f"a string of {value - 1} bytes exceeds {MAX_STRING_BYTES}")
    return value, position


def skip_tagged_fields(data: memoryview, position: int, count: int) -> int:
    """Return the position that follows `count` unknown tagged fields."""
    size = len(data)
    while count:
        count -= 1
        tag = data[position]
        position += 1
        if tag > 0x7F:
            tag, position = rest_of_uvarint(data, position, tag)
        field_bytes = data[position]
        position += 1
        if field_bytes > 0x7F:
            field_bytes, position = rest_of_uvarint(data, position, field_bytes)
        position += field_bytes
        if position > size:
            raise CorruptData(f"tagged field {tag} runs past the end of the message")
    return position


def append_uvarint(out: bytearray, value: int) -> None:
    """Append `value`, which must be from 0 to 2^32 - 1."""
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def append_string_length(out: bytearray, length_plus_one: int) -> None:
    """Append the length + 1 of a compact string. Raises ValueError if it exceeds Kafka's limit."""
    if length_plus_one - 1 > MAX_STRING_BYTES:
        raise ValueError(f"a string has {length_plus_one - 1} bytes, more than {MAX_STRING_BYTES}")
    append_uvarint(out, length_plus_one)
