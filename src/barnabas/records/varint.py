"""Reads and writes zigzag varints, which encode the integers in a record (KIP-98).

As in protocol buffers, each byte contains seven bits, starting with the lowest ones. The top bit is
set in all bytes but the last. The sign is stored in bit 0, so that numbers close to zero are short,
whatever their sign: 0, -1, 1, -2 become 0, 1, 2, 3.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from barnabas.errors import CorruptData
from barnabas.records.crc32c import Buffer

_MAX_SHIFT = 63  # ten bytes can represent 64 bits


def read_varint(data: Buffer, position: int) -> tuple[int, int]:
    """Return the number at `position` and the position after it. Raises IndexError if the data ends
    too early.
    """
    raw = data[position]
    position += 1
    if raw >= 0x80:
        raw, position = finish_varint(data, position, raw)
    return (raw >> 1) ^ -(raw & 1), position


def finish_varint(data: Buffer, position: int, raw: int) -> tuple[int, int]:
    """Read the rest of a varint. The caller has read the first byte, in which the top bit is set.

    Returns the number as it was *before* zigzag decoding, and the position after the varint.
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
    """Append a number of up to 64 bits as a varint."""
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
"""Maps each number of up to 64 bits to its varint. The varints of small numbers are cached."""
