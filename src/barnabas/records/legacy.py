"""Reads messages of magic 0 and 1. These formats were used before KIP-98, so they occur only in old
directories.

    offset int64 | size int32 | crc uint32 | magic int8 | attributes int8
    | [magic 1: timestamp int64] | key length int32, key | value length int32, value

The value of a compressed message is a set of messages. In magic 0, these have absolute offsets. In
magic 1 (KIP-31), their offsets are relative to the first message in the set, and the wrapper has
the offset of the last one. Barnabas reads these messages but never writes them.

In magic 0, the checksum in an LZ4 frame header is wrong, because Kafka included the magic number of
the frame in the hash. The checksum is corrected before the frame is decompressed.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct, error

from barnabas.errors import CorruptData
from barnabas.records.batch import BatchHeader, iterate_batches
from barnabas.records.compression import LZ4, NONE, decompress
from barnabas.records.crc32c import Buffer
from barnabas.records.frames import lz4_header_checksum

_INT32 = Struct(">i")
_KEY_AT = (18, 26)  # by magic
_LZ4_DESCRIPTOR_AT = 4

Message = tuple[int, int, bytes | None, bytes | None]
"""A message, consisting of its offset, its timestamp (-1 in magic 0), its key and its value."""


def iterate_messages(
    buffer: Buffer, position: int, header: BatchHeader, limit_bytes: int
) -> Iterator[Message]:
    """Yield the message at `position`. If it is compressed, yield the messages in it instead.
    Raises CorruptData.
    """
    key, value = _key_and_value(buffer, position, header)
    if header.codec == NONE:
        yield header.last_offset, header.max_timestamp, key, value
        return
    if value is None:
        raise CorruptData(f"the wrapper at offset {header.last_offset} wraps nothing")
    if header.codec == LZ4 and header.magic == 0:
        value = _with_right_checksum(value)
    inner = decompress(header.codec, value, limit_bytes)
    found = list(iterate_batches(inner))
    if not found:
        raise CorruptData(f"the wrapper at offset {header.last_offset} wraps nothing")
    # Relative offsets are counted such that the last one equals the wrapper's offset. In magic 0,
    # offsets are absolute.
    base = header.last_offset - found[-1][1].last_offset if header.magic == 1 else 0
    for at, message in found:
        # Kafka never nests wrappers, and nested ones could expand without limit.
        if message.codec != NONE or message.magic != header.magic:
            raise CorruptData(f"a message inside the wrapper at {header.last_offset} is wrapped")
        key, value = _key_and_value(inner, at, message)
        # With log-append time, the broker has set only the wrapper's timestamp.
        stamped = header if header.has_log_append_time else message
        yield base + message.last_offset, stamped.max_timestamp, key, value


def _key_and_value(
    buffer: Buffer, position: int, header: BatchHeader
) -> tuple[bytes | None, bytes | None]:
    end = position + header.size_bytes
    key, at = _nullable_bytes(buffer, position + _KEY_AT[header.magic], end)
    value, at = _nullable_bytes(buffer, at, end)
    if at != end:
        raise CorruptData(f"the message at offset {header.last_offset} does not fill its size")
    return key, value


def _nullable_bytes(buffer: Buffer, at: int, end: int) -> tuple[bytes | None, int]:
    try:
        (size,) = _INT32.unpack_from(buffer, at)
    except error as cause:
        raise CorruptData("a message's field is truncated") from cause
    at += _INT32.size
    if size == -1:
        return None, at
    if not 0 <= size <= end - at:
        raise CorruptData(f"a field of {size} bytes, but {end - at} are left")
    return bytes(buffer[at : at + size]), at + size


def _with_right_checksum(frame: bytes) -> bytes:
    """Return the LZ4 frame with a correct header checksum."""
    if len(frame) < _LZ4_DESCRIPTOR_AT + 2:
        raise CorruptData("an lz4 frame is truncated")
    flags = frame[_LZ4_DESCRIPTOR_AT]
    end = _LZ4_DESCRIPTOR_AT + 2 + (8 if flags & 8 else 0) + (4 if flags & 1 else 0)
    checksum = lz4_header_checksum(frame[_LZ4_DESCRIPTOR_AT:end])
    return frame[:end] + bytes((checksum,)) + frame[end + 1 :]
