"""Reads and writes zigzag varints, the integers inside a record (KIP-98).

As in protocol buffers, each byte carries seven bits, lowest first, and its top bit is set in all
but the last byte. The sign is in bit 0, so that small numbers of either sign are short: 0, -1, 1,
-2 become 0, 1, 2, 3.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from barnabas.errors import CorruptData
from barnabas.records.crc32c import Buffer

_MAX_SHIFT = 63  # ten bytes can represent 64 bits


def read_varint(data: Buffer, position: int) -> tuple[int, int]:
    """Return the number at `position` and the position after it. Raises IndexError at the end."""
    raw = data[position]
    position += 1
    if raw >= 0x80:
        raw, position = finish_varint(data, position, raw)
    return (raw >> 1) ^ -(raw & 1), position


def finish_varint(data: Buffer, position: int, raw: int) -> tuple[int, int]:
    """Finish a varint whose first byte the caller has read, with its top bit set.

    Returns the number *before* the zigzag is undone, and the position after it.
    """
    shift = 7
    raw &= 0x7F
    while True:
        byte = data[position]
        position += 1
        raw |= (byte & 0x7F) << shift
        if byte < 0x80:
            return raw, position
        shift += 7
        if shift > _MAX_SHIFT:
            raise CorruptData("a varint is longer than ten bytes")


def append_varint(buffer: bytearray, number: int) -> None:
    """Append a number of at most 64 bits as a varint."""
    raw = (number << 1) ^ (number >> 63)
    while raw > 0x7F:
        buffer.append(raw & 0x7F | 0x80)
        raw >>= 7
    buffer.append(raw)


class _Varints(dict[int, bytes]):
    def __missing__(self, number: int) -> bytes:
        made = bytearray()
        append_varint(made, number)
        encoded = bytes(made)
        if -1 <= number < _MOST_KEPT:
            self[number] = encoded
        return encoded


_MOST_KEPT = 16_384  # sizes, positions and small time differences repeat

VARINTS: Final[Mapping[int, bytes]] = _Varints()
"""Maps any number of at most 64 bits to its varint; varints of small numbers are cached."""
