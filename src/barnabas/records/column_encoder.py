"""Encodes columns as record batches without running Python code for each record.

    length | attributes | timestamp delta | offset delta | key length, key | value length, value
    | header count

Each field is written for all records in one step. The positions are computed from the lengths. The
tests compare the result with the bytes that `record.BatchBuilder` produces. The records have no
headers.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import as_strided

from barnabas.records.byte_column import ByteColumn, Integers, Octets

Raw = npt.NDArray[np.uint64]

_SHORTEST_RUN = 16  # records at equal distances; for shorter runs, a mask is cheaper


class Encoded(NamedTuple):
    """Encoded records, stored one after another, with the start of each record and the end of the
    last one.
    """

    octets: Octets
    starts: Integers


class _Varint(NamedTuple):
    raw: Raw  # already zigzag-encoded
    sizes: Integers


def encode(
    values: ByteColumn, keys: ByteColumn | None, time_deltas: Integers, offset_deltas: Integers
) -> Encoded:
    """Encode columns of equal length as records. The deltas are relative to the batch of the
    record.
    """
    times, offsets = _varint(time_deltas), _varint(offset_deltas)
    key_lengths = np.full(len(values), -1, np.int64) if keys is None else _lengths(keys)
    key_sizes, value_sizes = _varint(key_lengths), _varint(_lengths(values))
    sizes = 2 + times.sizes + offsets.sizes + key_sizes.sizes + value_sizes.sizes + values.lengths
    if keys is not None:
        sizes += keys.lengths
    records = _varint(sizes)
    ends = np.cumsum(sizes + records.sizes)
    starts = np.concatenate([np.zeros(1, np.int64), ends])
    octets = np.zeros(int(starts[-1]), np.uint8)  # attributes and header counts are zero
    at = _write(octets, starts[:-1], records) + 1
    for field in (times, offsets, key_sizes):
        at = _write(octets, at, field)
    if keys is not None:
        _copy(octets, at, keys)
        at = at + keys.lengths
    at = _write(octets, at, value_sizes)
    _copy(octets, at, values)
    return Encoded(octets, starts)


def _lengths(column: ByteColumn) -> Integers:
    return column.lengths if column.nulls is None else np.where(column.nulls, -1, column.lengths)


def _varint(numbers: Integers) -> _Varint:
    raw = ((numbers << 1) ^ (numbers >> 63)).view(np.uint64)
    sizes = np.ones(len(raw), np.int64)
    most = int(raw.max(initial=0))
    limit = 1 << 7
    while most >= limit:
        sizes += raw >= np.uint64(limit)
        limit <<= 7
    return _Varint(raw, sizes)


def _write(octets: Octets, at: Integers, field: _Varint) -> Integers:
    """Write a varint for each record, and return the positions after the varints."""
    raw, sizes = field
    longest = int(sizes.max(initial=1))
    for place in range(longest):
        rows = slice(None) if place == 0 else sizes > place
        low = (raw[rows] >> np.uint64(7 * place)).astype(np.uint8)
        more = sizes[rows] > place + 1
        octets[at[rows] + place] = np.where(more, low | 0x80, low & 0x7F)
    return at + sizes


def _copy(octets: Octets, at: Integers, column: ByteColumn) -> None:
    """Copy each byte string to the position given for it."""
    lengths = column.lengths
    if not len(column.data):
        return
    size = int(lengths[0])
    # Values of the same size are at equal distances over long runs. A run can therefore be copied
    # with one strided copy.
    if size == int(lengths.max()) == int(lengths.min()):
        steps = np.diff(at)
        runs = np.flatnonzero(np.diff(steps)) + 2 if len(steps) > 1 else np.zeros(0, np.int64)
        if len(runs) * _SHORTEST_RUN <= len(at):
            _copy_runs(octets, at, column.data.reshape(-1, size), runs)
            return
    gaps = at.copy()
    gaps[1:] -= at[:-1] + lengths[:-1]
    counts = np.stack([gaps, lengths], axis=1).reshape(-1)
    mask = np.repeat(np.tile(np.array([False, True]), len(at)), counts)
    octets[: len(mask)][mask] = column.data


def _copy_runs(octets: Octets, at: Integers, rows: Octets, runs: Integers) -> None:
    """Copy byte strings that have the same size. Within a run, they are at equal distances."""
    first = 0
    for end in (*runs.tolist(), len(at)):
        count = end - first
        if count <= 0:
            continue
        step = int(at[first + 1] - at[first]) if count > 1 else 1
        shape = (count, rows.shape[1])
        place = octets[int(at[first]) : int(at[end - 1]) + rows.shape[1]]
        as_strided(place, shape, (step, 1))[:] = rows[first:end]
        first = end
