"""Checks quickly whether the records in a producer's batch match the header.

    header | first record | ... | length | 0 | timestamp delta | count - 1 | ... to the batch's end
             ^ delta 0, offset delta 0                          ^ offset delta

Walking the records takes a microsecond per record, which is more than all other work on a batch.
However, the last record reveals a wrong record count, because its offset delta must be its index,
and its length must extend to the end of the batch. One search from the end finds these bytes. If
this check fails, the batch is not rejected, but checked by `rewrite.Walk`.

If the check succeeds, the first and the last record confirm the record count in the header. The
largest timestamp is that of the first or the last record, or at most an hour ahead of the broker's
clock. Compressed records are framed up to their last byte and declare a size that readers can
decompress. The records in between and the content of the frames are not checked (decision 18 gives
the figures).
"""

from __future__ import annotations

from functools import lru_cache
from struct import Struct

from barnabas.errors import CorruptData
from barnabas.records.batch import CODEC_MASK, HEADER_BYTES
from barnabas.records.compression import NONE, stated_bytes
from barnabas.records.varint import append_varint, finish_varint, read_varint

AHEAD_MS = 3_600_000
"""If a timestamp in a batch is further ahead of the clock than this, the records are checked."""

MAX_PLAIN_BYTES = 16 * 1024 * 1024
"""If the decompressed size of a batch is larger than this, the records are checked."""

_FIELDS = Struct(">hiqq14xi")
"""The header fields needed: attributes, last offset delta, base and max timestamp, record count."""
_FIELDS_AT = 21
_MIN_RECORD_BYTES = 7
_MAX_CANDIDATES = 64
_MAX_VARINT_BYTES = 10
_NEAR_BYTES = 256  # bytes in addition to the average record
_TAIL_BYTES = 512  # bytes in addition to twice the average record


def is_plausible(records: memoryview, now_ms: int) -> bool:
    """Return whether the batch passes the check.

    The result may be True even if `admit` would reject the header.
    """
    if len(records) < HEADER_BYTES:
        return True
    attributes, last_delta, base, newest, count = _FIELDS.unpack_from(records, _FIELDS_AT)
    if count < 1 or last_delta != count - 1:
        return True
    codec = attributes & CODEC_MASK
    if codec != NONE:
        return base <= newest <= now_ms + AHEAD_MS and _is_framed(records, codec, count)
    if count == 1:
        return base == newest and is_one_record(records)
    return are_ends_plausible(records, count, newest - base, newest <= now_ms + AHEAD_MS)


def is_one_record(records: memoryview) -> bool:
    """Return whether an uncompressed batch contains exactly one record, whose deltas are 0."""
    size = len(records)
    if size < HEADER_BYTES + _MIN_RECORD_BYTES:
        return False
    # Check the length, and that the attributes and both deltas are 0, as below. Here, the end is
    # already known.
    length = records[61]
    if length < 0x80:
        return length == (size - 62) << 1 and not (records[63] or records[64])
    if (more := records[62]) < 0x80:
        length += (more << 7) - 0x80
        return length == (size - 63) << 1 and not (records[64] or records[65])
    return _end_of_long_first(records, length) == size


def are_ends_plausible(records: memoryview, count: int, span_ms: int, any_time: bool) -> bool:
    """Return whether an uncompressed batch begins and ends like a batch of `count` records (at
    least two).

    `span_ms` is the difference between the base timestamp and the largest one. If `any_time` is
    set, any of the records may have the largest timestamp.
    """
    size = len(records)
    body_bytes = size - HEADER_BYTES
    if span_ms < 0 or count * _MIN_RECORD_BYTES > body_bytes:
        return False
    length = records[61]
    if length < 0x80:
        is_first = not (length & 1 or records[63] or records[64]) and 62 + (length >> 1) < size
    elif (more := records[62]) < 0x80:
        length += (more << 7) - 0x80
        is_first = not (length & 1 or records[64] or records[65]) and 63 + (length >> 1) < size
    else:
        is_first = 0 < _end_of_long_first(records, length) < size
    if not is_first:
        return False
    # Inline `_is_last` for a last record under 8 KiB and not much longer than the others. Its calls
    # would cost each batch a microsecond.
    tail = bytes(records[-(body_bytes // count) - _NEAR_BYTES :])
    at = tail.rfind(_after_length(span_ms, count))
    twice = (len(tail) - at) << 1
    if at > 1 and (
        tail[at - 1] == twice
        if twice < 0x80
        else twice < 0x4000 and tail[at - 1] == twice >> 7 and tail[at - 2] == twice & 0x7F | 0x80
    ):
        return True
    return _is_last(records, count, span_ms, any_time)


def _is_framed(records: memoryview, codec: int, count: int) -> bool:
    """Return whether the framing of compressed records is valid and allows for `count` records."""
    try:
        return (
            count * _MIN_RECORD_BYTES
            <= stated_bytes(codec, records[HEADER_BYTES:])
            <= MAX_PLAIN_BYTES
        )
    except CorruptData:
        return False


def _end_of_long_first(records: memoryview, length: int) -> int:
    """Return the end of the first record if that has at least 8 KiB, otherwise 0."""
    try:
        raw, at = finish_varint(records[: HEADER_BYTES + 11], HEADER_BYTES + 1, length)
    except (IndexError, CorruptData):
        return 0
    return 0 if raw & 1 or any(records[at + 1 : at + 3]) else at + (raw >> 1)


def _is_last(records: memoryview, count: int, span_ms: int, any_time: bool) -> bool:
    """Return whether the offset delta of the last record is `count - 1`.

    Unless `any_time` is set, either this record or the first one must also have the largest
    timestamp.
    """
    number, expected = _varint(count - 1), _after_length(span_ms, count)
    body_bytes = len(records) - HEADER_BYTES
    tail_bytes = min(2 * (body_bytes // count) + _TAIL_BYTES, body_bytes)
    while True:
        tail = bytes(records[-tail_bytes:])
        at = tail.rfind(expected)
        if at > 0 and _is_preceded_by_length(tail, at):
            return True
        if (any_time or not span_ms) and _has_last(tail, number, span_ms):
            return True
        if tail_bytes == body_bytes:
            return False
        tail_bytes = body_bytes


def _has_last(tail: bytes, number: bytes, span_ms: int) -> bool:
    """Return whether the batch ends with a record that has this offset delta and a timestamp within
    the span.
    """
    at = len(tail)
    for _ in range(_MAX_CANDIDATES):
        at = tail.rfind(number, 0, at)
        if at < 3:
            return False
        begin = at - 1  # the timestamp delta's last byte is its only one without the top bit
        if tail[begin] < 0x80:
            while begin > 1 and tail[begin - 1] >= 0x80:
                begin -= 1
            begin -= 1
            is_time = at - begin <= 1 + _MAX_VARINT_BYTES
            if is_time and tail[begin] == 0 and _is_preceded_by_length(tail, begin):
                return read_varint(tail, begin + 1)[0] <= span_ms
    return False


def _is_preceded_by_length(tail: bytes, at: int) -> bool:
    """Return whether the bytes before `at` encode the length of a record that extends from `at` to
    the end.
    """
    return tail.endswith(_varint(len(tail) - at), 0, at)


@lru_cache(4096)  # the batches of a producer are much alike
def _varint(number: int) -> bytes:
    encoded = bytearray()
    append_varint(encoded, number)
    return bytes(encoded)


@lru_cache(4096)
def _after_length(span_ms: int, count: int) -> bytes:
    """Return the bytes that follow the length in the last record: attributes, timestamp delta and
    offset delta.
    """
    return b"\0" + _varint(span_ms) + _varint(count - 1)
