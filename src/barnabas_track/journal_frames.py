"""Encodes the frames of a journal. Pure.

    length (4) | sequence (8) | crc of header (4) | crc of payload (4) | payload

The payload contains records. Each record contains its topic, id, key, value and headers, each
preceded by its length. A frame is written with one call and synced before the next one, so only the
last frame of a file can be incomplete after a crash.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from barnabas.client.producer.batch import ProducerRecord
from barnabas_track.outbox import Outgoing

_HEADER: Final = struct.Struct(">IQII")
_CHECKED: Final = struct.Struct(">IQ")
_LENGTH: Final = struct.Struct(">i")
_NULL: Final = -1


class DamagedFrame(ValueError):
    """Raised if a frame is complete but differs from what was written."""


class Frame(NamedTuple):
    """A frame's sequence number and its place in the file."""

    sequence: int
    start: int
    end: int


def encode_frame(sequence: int, records: Sequence[Outgoing]) -> bytes:
    """Return a frame with these records."""
    parts: list[bytes] = []
    for id_, record in records:
        headers = tuple(record.headers or ())
        fields = [record.topic.encode(), id_.encode(), record.key, record.value]
        parts.append(_LENGTH.pack(len(headers)))
        for field in (*fields, *(each for name, value in headers for each in (name, value))):
            if field is None:
                parts.append(_LENGTH.pack(_NULL))
                continue
            data = field.encode() if isinstance(field, str) else field
            parts += (_LENGTH.pack(len(data)), data)
    payload = b"".join(parts)
    checked = _CHECKED.pack(len(payload), sequence)
    header = _HEADER.pack(len(payload), sequence, zlib.crc32(checked), zlib.crc32(payload))
    return header + payload


def frames_in(data: bytes) -> Iterator[Frame]:
    """Yield the complete frames of a file. Raises DamagedFrame."""
    position = 0
    while position < len(data):
        if len(data) - position < _HEADER.size:
            return
        length, sequence, header_crc, payload_crc = _HEADER.unpack_from(data, position)
        if zlib.crc32(_CHECKED.pack(length, sequence)) != header_crc:
            if not any(data[position:]):
                return  # the file was extended, but its content was not written before the crash
            raise DamagedFrame(f"the frame at byte {position} has a wrong checksum")
        end = position + _HEADER.size + length
        if end > len(data):
            return
        if zlib.crc32(memoryview(data)[position + _HEADER.size : end]) != payload_crc:
            raise DamagedFrame(f"the frame at byte {position} has a wrong checksum")
        yield Frame(sequence, position, end)
        position = end


def decode_frame(frame: bytes) -> list[Outgoing]:
    """Return the records of a frame whose checksums are correct."""
    position = _HEADER.size
    found: list[Outgoing] = []

    def take() -> bytes | None:
        nonlocal position
        (length,) = _LENGTH.unpack_from(frame, position)
        position += _LENGTH.size
        if length == _NULL:
            return None
        position += length
        return frame[position - length : position]

    while position < len(frame):
        (count,) = _LENGTH.unpack_from(frame, position)
        position += _LENGTH.size
        topic, id_, key, value = (take() for _ in range(4))
        headers = tuple(((take() or b"").decode(), take()) for _ in range(count))
        record = ProducerRecord((topic or b"").decode(), value, key, headers=headers)
        found.append(Outgoing((id_ or b"").decode(), record))
    return found
