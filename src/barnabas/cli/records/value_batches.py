"""Whole record batches of values without keys and headers: what a file of lines is. Pure.

A record differs from its neighbours in four places only: its length, its offset, its value's length
and its value. So a batch is joined from pieces of which most are shared, without a call per record:

    00 | length, 00 00 | offset delta | 01, value length | value        the first 00 ends the record
                                                                        before: it has no headers
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate

from barnabas.records.batch import (
    NO_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    BatchHeader,
    seal,
)
from barnabas.records.compression import NONE, compress
from barnabas.records.varint import append_varint

MOST_RECORDS = 4_096  # of a batch


class _Heads(dict[int, tuple[bytes, bytes]]):
    """The pieces around the offset delta, by the size of the value; made when they are needed."""

    def __init__(self, delta_bytes: int) -> None:
        self._delta_bytes = delta_bytes

    def __missing__(self, size_bytes: int) -> tuple[bytes, bytes]:
        if len(self) > MOST_RECORDS:
            self.clear()
        length = b"\x01" + _varint(size_bytes)
        record_bytes = 2 + self._delta_bytes + len(length) + size_bytes + 1
        pieces = self[size_bytes] = (b"\0" + _varint(record_bytes) + b"\0\0", length)
        return pieces


def _varint(value: int) -> bytes:
    written = bytearray()
    append_varint(written, value)
    return bytes(written)


_ONE_BYTE = 64  # below this a varint has one byte, and two below 8,192
_DELTAS = [_varint(delta) for delta in range(MOST_RECORDS)]
_NEAR, _FAR = _Heads(1), _Heads(2)


def encode_values(values: Sequence[bytes], timestamp_ms: int, codec: int = NONE) -> bytes:
    """The batch of these values, at most 4,096, all with this timestamp."""
    assert 0 < len(values) <= MOST_RECORDS
    pieces: list[bytes] = []
    for heads, first, end in ((_NEAR, 0, _ONE_BYTE), (_FAR, _ONE_BYTE, MOST_RECORDS)):
        for value, delta in zip(values[first:end], _DELTAS[first:end], strict=False):
            start, length = heads[len(value)]
            pieces += (start, delta, length, value)
    pieces[0] = pieces[0][1:]  # there is no record before the first
    pieces.append(b"\0")
    records = b"".join(pieces)
    header = BatchHeader(
        base_offset=0,
        batch_length=0,
        partition_leader_epoch=NO_LEADER_EPOCH,
        magic=2,
        crc=0,
        attributes=codec,
        last_offset_delta=len(values) - 1,
        base_timestamp=timestamp_ms,
        max_timestamp=timestamp_ms,
        producer_id=NO_PRODUCER_ID,
        producer_epoch=NO_PRODUCER_EPOCH,
        base_sequence=NO_SEQUENCE,
        record_count=len(values),
    )
    return seal(header, records if codec == NONE else compress(codec, records))


def batches_of(values: Sequence[bytes], most_bytes: int) -> Iterator[Sequence[bytes]]:
    """The values in stretches of at most that many bytes, but one value at least."""
    ends = list(accumulate(map(len, values)))
    start = before = 0
    while start < len(values):
        end = min(bisect_right(ends, before + most_bytes), start + MOST_RECORDS)
        end = max(end, start + 1)
        yield values[start:end]
        start, before = end, ends[end - 1]
