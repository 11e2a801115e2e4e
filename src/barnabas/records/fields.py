"""Decodes the fields of many records at once, using numpy on a single buffer (`octets`).

This module finds the starts of records, decodes varints and byte strings at arrays of positions,
and copies byte strings into an Arrow column. The buffer ends with `PADDING`, so that reading a
little beyond the last record does not leave the buffer. For any bytes, the result is either arrays
or `CorruptData`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa  # type: ignore[import-untyped]  # ships neither stubs nor py.typed

from barnabas.errors import CorruptData
from barnabas.records.record_starts import walk_starts

Integers = npt.NDArray[np.int64]
Octets = npt.NDArray[np.uint8]

PADDING = bytes(16)
_RUN = 32  # it is cheaper to walk over shorter runs of equal sizes
_WALK = 512


def record_starts(data: bytes, sizes: Sequence[int], counts: Sequence[int]) -> Integers:
    """Return the positions of all records in consecutive batches.

    Batch i has `counts[i]` records in `sizes[i]` octets. All batches are walked in one go, because
    a run of records with equal sizes may continue in the next batch. Raises `CorruptData` if the
    records do not exactly fill each batch.
    """
    end, left = sum(sizes), sum(counts)
    pieces: list[Integers] = []
    position = 0
    while left:
        run = _equal_run(data, position, end, left) if left >= _RUN else 0
        if run >= _RUN:
            stride = _length(data, position)
            pieces.append(position + stride * np.arange(run, dtype=np.int64))
            position += stride * run
        else:
            run = min(left, _WALK)
            try:
                walked, position = walk_starts(data, position, run)
            except IndexError as cause:
                raise CorruptData("a record reaches beyond its batch") from cause
            if position > end:  # a length may be any number, even one too large for an array
                raise CorruptData("a record reaches beyond its batch")
            pieces.append(np.array(walked, np.int64))
        left -= run
    starts = np.concatenate([*pieces, [position]])
    # Not only the last batch but every batch must end where its last record ends.
    filled = starts[np.cumsum(counts)] == np.cumsum(sizes)
    if position != end or not filled.all():
        raise CorruptData("a batch is not filled by its records")
    return starts[:-1]


def _equal_run(data: bytes, position: int, end: int, limit: int) -> int:
    """Return how many records from `position` on have the same length. The result is at most
    `limit`.

    Records that have the same length start with the same varint. If these octets are equal at a
    fixed stride, each record therefore proves where the next one starts. This function uses bytes
    instead of an array, because most runs are short (from 64 on, an offset delta takes a second
    octet) and numpy calls are slow.
    """
    stride = _length(data, position)
    limit = min(limit, (end - position) // stride)
    prefix = [data[position : position + 1]]
    while prefix[-1] >= b"\x80":
        prefix.append(data[position + len(prefix) : position + len(prefix) + 1])
    run, window = 0, _RUN
    while run < limit:
        at = position + run * stride
        window = min(window * 4, limit - run)
        same = window
        for index, octet in enumerate(prefix):
            column = data[at + index : at + index + stride * (window - 1) + 1 : stride]
            same = min(same, window - len(column.lstrip(octet)))
        run += same
        if same < window:
            break
    return run


def _length(data: bytes, position: int) -> int:
    """Return the size in octets of the record at `position`, including the length varint."""
    zigzag = shift = 0
    for octet in data[position : position + 5]:
        zigzag |= (octet & 0x7F) << shift
        shift += 7
        if octet < 0x80:
            return (zigzag >> 1) + shift // 7
    raise CorruptData("a record's length is not terminated")


def varints(octets: Octets, positions: Integers) -> tuple[Integers, Integers]:
    """Return the zigzag varints at `positions` and the positions after them."""
    octet = octets.take(positions)
    small = octet.view(np.int8)  # nearly all are one octet long, so decode them as such first
    values = ((small >> 1) ^ -(small & 1)).astype(np.int64)
    after = positions + 1
    longer = np.flatnonzero(small < 0)
    if longer.size:
        values[longer], after[longer] = _long_varints(octets, octet[longer], after[longer])
    return values, after


def _long_varints(octets: Octets, first: Octets, after: Integers) -> tuple[Integers, Integers]:
    """Decode varints that have more than one octet. `first` contains the first octets, and `after`
    the positions after them.
    """
    zigzag = (first & 0x7F).astype(np.uint64)
    longer = np.arange(first.size)
    shift = 7
    while longer.size:
        # A varint has at most ten octets, because ten times seven bits are enough for 64 bits.
        if shift > 63:
            raise CorruptData("a varint is longer than ten octets")
        at = after[longer]
        if at.max() >= octets.size:
            raise CorruptData("a varint reaches beyond the batch")
        octet = octets.take(at)
        zigzag[longer] |= (octet & 0x7F).astype(np.uint64) << np.uint64(shift)
        after[longer] = at + 1
        longer = longer[octet >= 0x80]
        shift += 7
    values = (zigzag >> np.uint64(1)).astype(np.int64) ^ -(zigzag & np.uint64(1)).astype(np.int64)
    return values, after


class Blobs(NamedTuple):
    """The positions and the lengths of byte strings. A length of -1 stands for null."""

    positions: Integers
    lengths: Integers

    def at(self, rows: Integers) -> Blobs:
        return Blobs(self.positions[rows], self.lengths[rows])


class Fields(NamedTuple):
    """The fields of records up to their headers, with one row per record."""

    time_deltas: Integers
    offset_deltas: Integers
    keys: Blobs
    values: Blobs
    cursor: Integers
    """The positions at which the records' headers begin."""


def any_fields(octets: Octets, starts: Integers, ends: Integers) -> Fields:
    """Decode the fields of any kind of records. Raises `CorruptData` if a record is malformed."""
    _, cursor = varints(octets, starts)
    time_deltas, cursor = varints(octets, cursor + 1)  # skip the attributes octet, which is unused
    offset_deltas, cursor = varints(octets, cursor)
    keys, cursor = read_blobs(octets, cursor, ends)
    values, cursor = read_blobs(octets, cursor, ends)
    return Fields(time_deltas, offset_deltas, keys, values, cursor)


def read_blobs(octets: Octets, cursor: Integers, ends: Integers) -> tuple[Blobs, Integers]:
    """Locate the byte strings at `cursor`, each of which follows its length, and return the
    positions after them.
    """
    if (cursor >= ends).any():
        raise CorruptData("a record ends before its fields do")
    lengths, positions = varints(octets, cursor)
    # As in Kafka's DefaultRecord and in `record.walk_records`, any negative length means null.
    lengths = np.maximum(lengths, -1)
    after = positions + np.maximum(lengths, 0)
    if (lengths > ends - positions).any():
        raise CorruptData("a field reaches beyond its record")
    return Blobs(positions, lengths), after


def binary(octets: Octets, blobs: Blobs) -> pa.Array:
    width = int(blobs.lengths[0])
    if (blobs.lengths != width).any():
        return _binary_of_any_width(octets, blobs)
    items = np.zeros((blobs.lengths.size, max(width, 0)), np.uint8)
    if width > 0:
        # Gather items of exactly this width, because numpy copies each such item with one memmove.
        overlapping = np.ndarray((octets.size - width + 1,), f"V{width}", octets, strides=(1,))
        items = overlapping[blobs.positions].view(np.uint8)
    return equal_width(items, width, blobs.lengths.size)


def equal_width(items: Octets, width: int, count: int) -> pa.Array:
    """Return `count` byte strings of `width` octets from `items`, or nulls if the width is -1."""
    if width < 0:
        return pa.nulls(count, pa.binary())
    offsets = np.arange(count + 1, dtype=np.int32) * np.int32(width)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(items)]
    return pa.Array.from_buffers(pa.binary(), count, buffers)


# Arrow's view of a byte string, 16 octets, copied by its cast to `binary` in C:
#     length <= 12:  int32 length | the octets themselves, padded with zeros
#     longer:        int32 length | first four octets | int32 buffer | int32 position in it
_INLINE_BYTES = 12
_VIEW = np.dtype([("length", "<i4"), ("prefix", "V4"), ("buffer", "<i4"), ("position", "<i4")])
_INLINE_VIEW = np.dtype([("length", "<i4"), ("inline", f"V{_INLINE_BYTES}")])


def _binary_of_any_width(octets: Octets, blobs: Blobs) -> pa.Array:
    present = blobs.lengths >= 0
    positions = np.where(present, blobs.positions, 0)
    views = np.zeros(positions.size, _VIEW)
    views["length"] = np.maximum(blobs.lengths, 0)
    overlapping = np.ndarray(
        (octets.size - _INLINE_BYTES + 1,), f"V{_INLINE_BYTES}", octets, strides=(1,)
    )
    views.view(_INLINE_VIEW)["inline"] = overlapping[positions]
    longer = blobs.lengths > _INLINE_BYTES
    views["buffer"][longer] = 0
    views["position"][longer] = positions[longer]
    validity = None if present.all() else pa.py_buffer(np.packbits(present, bitorder="little"))
    buffers = [validity, pa.py_buffer(views.view(np.uint8)), pa.py_buffer(octets)]
    return pa.Array.from_buffers(pa.binary_view(), positions.size, buffers).cast(pa.binary())
