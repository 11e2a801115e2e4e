"""The partitions of a whole column of keys: murmur2 over all of them at once."""

from __future__ import annotations

from typing import Final

import numpy as np

from barnabas.client.producer.murmur2 import murmur2
from barnabas.records.byte_column import ByteColumn, Integers

_SEED: Final = 0x9747B28C
_M: Final = np.uint32(0x5BD1E995)
_LONGEST: Final = 1_024  # bytes; longer keys are hashed one by one


def partitions_for_keys(keys: ByteColumn, partition_count: int) -> Integers:
    """As `murmur2.partition_for_key` for each row; what it gives for a null is of no use."""
    data = np.concatenate([keys.data, np.zeros(4, np.uint8)])
    lengths, starts = keys.lengths, keys.starts
    hashed = np.uint32(_SEED) ^ lengths.astype(np.uint32)
    words = np.where(lengths <= _LONGEST, lengths >> 2, 0)
    for number in range(int(words.max(initial=0))):
        rows = np.flatnonzero(words > number)
        word = _word(data, starts[rows] + 4 * number) * _M
        word = (word ^ (word >> np.uint32(24))) * _M
        hashed[rows] = (hashed[rows] * _M) ^ word
    rest = lengths & 3
    rows = np.flatnonzero(rest)
    if len(rows):
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
    """The four bytes at each position, little-endian."""
    found = data[at].astype(np.uint32)
    for place in range(1, 4):
        found |= data[at + place].astype(np.uint32) << np.uint32(8 * place)
    return found
