"""Whether the records of a producer's batch can be what its header says, at a glance.

    header | first record | ... | length | 0 | timestamp delta | count - 1 | ... to the batch's end
             ^ delta 0, offset delta 0                          ^ offset delta

A walk over every record costs a microsecond each, more than all else that is done with a batch. But
a header that miscounts its records is betrayed by the last one: its offset delta is its number, and
its length reaches to the end of the batch. Looking for these bytes from the end is one search. A
batch that does not pass is not refused by this: `rewrite.Walk` decides.

What passes has, as far as its first and last record tell, as many records as it claims, and a
largest timestamp that is one of theirs or no more than an hour ahead of the broker's clock. What is
between them, and what is compressed, is not looked at (decision 18 has the figures).
"""

from __future__ import annotations

from functools import lru_cache
from struct import Struct

from barnabas.errors import CorruptData
from barnabas.records.batch import CODEC_MASK, HEADER_BYTES
from barnabas.records.compression import GZIP, LZ4, NONE, ZSTD
from barnabas.records.varint import append_varint, finish_varint, read_varint

AHEAD_MS = 3_600_000
"""How far the time of a batch may be ahead of the broker's clock before its records are asked."""

_FIELDS = Struct(">hiqq14xi5B")
"""Attributes, last offset delta, base and max timestamp, count, the first bytes of the records."""
_FIELDS_AT = 21
_MIN_RECORD_BYTES = 7
_MAX_CANDIDATES = 64
_MAX_VARINT_BYTES = 10
_TAIL_BYTES = 512  # besides twice the average record
_MAGIC = {GZIP: b"\x1f\x8b", LZ4: b"\x04\x22\x4d\x18", ZSTD: b"\x28\xb5\x2f\xfd"}


def is_plausible(records: memoryview, now_ms: int) -> bool:
    """Whether one batch passes; True as well for what `admit` refuses by its header alone."""
    size = len(records)
    if size < HEADER_BYTES + _MIN_RECORD_BYTES:
        return size < HEADER_BYTES
    attributes, last_delta, base, newest, count, length, more, third, fourth, fifth = (
        _FIELDS.unpack_from(records, _FIELDS_AT)
    )
    if count < 1 or last_delta != count - 1:
        return True
    codec = attributes & CODEC_MASK
    if codec != NONE:
        if not base <= newest <= now_ms + AHEAD_MS:
            return False
        return _has_magic(records, codec)
    # The first record's length, its attributes and deltas: the deltas are 0.
    if length < 0x80:
        end = HEADER_BYTES + 1 + (length >> 1)
        is_first = not (length & 1 or third or fourth)
    elif more < 0x80:
        end = HEADER_BYTES + 2 + (length & 0x7F | more << 7) // 2
        is_first = not (length & 1 or fourth or fifth)
    else:
        end, is_first = _long_first(records, length)
    if not is_first:
        return False
    if count == 1:
        return bool(end == size and newest == base)
    if end >= size or newest < base or count * _MIN_RECORD_BYTES > size - HEADER_BYTES:
        return False
    return _is_last(records, count, newest - base, newest <= now_ms + AHEAD_MS)


def is_one_record(records: memoryview) -> bool:
    """Whether a batch, whose header fits into it, has one record with the batch's time in it, of
    less than 8 KiB; as `is_plausible`, sooner. False may be wrong."""
    size = len(records)
    if size < HEADER_BYTES + _MIN_RECORD_BYTES:
        return False
    length = records[61]
    if length < 0x80:
        return length == (size - 62) << 1 and not (records[63] or records[64])
    length += (records[62] << 7) - 0x80
    return length == (size - 63) << 1 and not (records[64] or records[65])


def _has_magic(records: memoryview, codec: int) -> bool:
    magic = _MAGIC.get(codec, b"")
    return records[HEADER_BYTES : HEADER_BYTES + len(magic)] == magic


def _long_first(records: memoryview, length: int) -> tuple[int, bool]:
    """Where a first record ends that has at least 8 KiB, and whether its deltas are 0."""
    try:
        raw, at = finish_varint(records[: HEADER_BYTES + 11], HEADER_BYTES + 1, length)
    except (IndexError, CorruptData):
        return 0, False
    deltas = records[at + 1 : at + 3]
    return at + (raw >> 1), not raw & 1 and not any(deltas)


def _is_last(records: memoryview, count: int, delta_ms: int, any_time: bool) -> bool:
    """Whether the last record has the offset delta `count - 1`; and, unless `any_time`, the
    largest timestamp is its own or the first one's."""
    number = _varint(count - 1)
    expected = b"\0" + _varint(delta_ms) + number
    body_bytes = len(records) - HEADER_BYTES
    tail_bytes = 2 * (body_bytes // count) + _TAIL_BYTES
    if tail_bytes > body_bytes:
        tail_bytes = body_bytes
    while True:
        tail = bytes(records[-tail_bytes:])
        at = tail.rfind(expected)
        if at > 0 and tail.endswith(_varint(tail_bytes - at), 0, at):
            return True
        if (any_time or not delta_ms) and _has_last(tail, number, delta_ms):
            return True
        if tail_bytes == body_bytes:
            return False
        tail_bytes = body_bytes


def _has_last(tail: bytes, number: bytes, delta_ms: int) -> bool:
    """Whether a record with this offset delta, and a time up to that, ends where the batch does."""
    at = len(tail)
    for _ in range(_MAX_CANDIDATES):
        at = tail.rfind(number, 0, at)
        if at < 3:
            return False
        begin = at - 1  # of the timestamp delta, whose last byte alone has no top bit
        if tail[begin] < 0x80:
            while begin > 1 and tail[begin - 1] >= 0x80:
                begin -= 1
            begin -= 1
            is_time = at - begin <= 1 + _MAX_VARINT_BYTES
            if is_time and tail[begin] == 0 and _is_preceded_by_length(tail, begin):
                return read_varint(tail, begin + 1)[0] <= delta_ms
    return False


def _is_preceded_by_length(tail: bytes, at: int) -> bool:
    """Whether the bytes before `at` are the length of a record from there to the end."""
    return tail.endswith(_varint(len(tail) - at), 0, at)


@lru_cache(4096)  # a producer's batches are much alike
def _varint(number: int) -> bytes:
    encoded = bytearray()
    append_varint(encoded, number)
    return bytes(encoded)
