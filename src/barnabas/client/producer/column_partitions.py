"""Chooses the partitions of rows in columns: as given, by key, or without a key (PR-2). Pure."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from barnabas.client import arguments
from barnabas.client.producer.column_rows import ColumnRows, whole_numbers
from barnabas.client.producer.murmur2 import murmur2
from barnabas.client.producer.partitioner import Partitioner, Partitions
from barnabas.records.byte_column import ByteColumn, Integers

_SEED: Final = 0x9747B28C
_M: Final = np.uint32(0x5BD1E995)
_LONGEST: Final = 1_024  # bytes; longer keys are hashed one by one


def given_partitions(partition: Any, count: int) -> Integers:
    """Return the partition of each row, given one number for all rows or one number per row."""
    numbers = whole_numbers(partition, count, "partition")
    if count and int(numbers.max()) > arguments.INT32_MAX:
        raise ValueError(f"partition: {numbers.max()} is not between 0 and {arguments.INT32_MAX}")
    return numbers


def chosen_partitions(
    partitioner: Partitioner, topic: str, choice: Partitions, rows: ColumnRows
) -> Integers:
    """Choose the partition of each row, by its key if it has one."""
    sizes = rows.sizes()
    if rows.keys is None:
        return _keyless(partitioner, topic, choice, sizes)
    chosen = partitions_for_keys(rows.keys, choice.partition_count)
    nulls = rows.keys.nulls
    if nulls is not None:
        chosen[nulls] = _keyless(partitioner, topic, choice, sizes[nulls])
    return chosen


def _keyless(partitioner: Partitioner, topic: str, choice: Partitions, sizes: Integers) -> Integers:
    """Return the partition of each row. The partitioner keeps a partition for a number of bytes."""
    sums = np.cumsum(sizes)
    partitions, ends = [], [0]
    while ends[-1] < len(sizes):
        first = ends[-1]
        partitions.append(partitioner.partition(topic, None, choice))
        before = int(sums[first - 1]) if first else 0
        stays_bytes = partitioner.stays_bytes(topic)
        # The stay ends once it exceeds this number of bytes; the row that exceeds it still goes to
        # this partition.
        end = int(np.searchsorted(sums, before + stays_bytes, "left")) + 1
        ends.append(min(end if stays_bytes else first + 1, len(sizes)))
        partitioner.on_appended(topic, int(sums[ends[-1] - 1]) - before)
    return np.repeat(np.array(partitions, np.int64), np.diff(ends))


def partitions_for_keys(keys: ByteColumn, partition_count: int) -> Integers:
    """Return the partition for each key, by `murmur2`. The number for a null key is meaningless."""
    # Append four bytes, to make the last word of the last key readable.
    data = np.concatenate([keys.data, np.zeros(4, np.uint8)])
    lengths, starts = keys.lengths, keys.starts
    hashed = np.uint32(_SEED) ^ lengths.astype(np.uint32)
    # Each step processes one word of all keys that are long enough. Very long keys would take many
    # steps for few rows, so they are hashed one by one below.
    words = np.where(lengths <= _LONGEST, lengths >> 2, 0)
    for number in range(int(words.max(initial=0))):
        rows = np.flatnonzero(words > number)
        word = _word(data, starts[rows] + 4 * number) * _M
        word = (word ^ (word >> np.uint32(24))) * _M
        hashed[rows] = (hashed[rows] * _M) ^ word
    rest = lengths & 3
    rows = np.flatnonzero(rest)
    if len(rows):
        # Mask out the bytes after the end, which belong to the next key.
        tail = _word(data, starts[rows] + (lengths[rows] & ~3))
        kept = (np.uint32(1) << (8 * rest[rows]).astype(np.uint32)) - np.uint32(1)
        hashed[rows] = (hashed[rows] ^ (tail & kept)) * _M
    hashed = (hashed ^ (hashed >> np.uint32(13))) * _M
    hashed ^= hashed >> np.uint32(15)
    for row in np.flatnonzero(lengths > _LONGEST).tolist():
        start = int(starts[row])
        hashed[row] = murmur2(data[start : start + int(lengths[row])].tobytes())
    chosen = (hashed & np.uint32(0x7FFFFFFF)).astype(np.int64)
    return np.remainder(chosen, partition_count)


def _word(
    data: np.ndarray[tuple[int], np.dtype[np.uint8]], at: Integers
) -> np.typing.NDArray[np.uint32]:
    """Return the four bytes at each position as a little-endian number."""
    found = data[at].astype(np.uint32)
    for place in range(1, 4):
        found |= data[at + place].astype(np.uint32) << np.uint32(8 * place)
    return found
