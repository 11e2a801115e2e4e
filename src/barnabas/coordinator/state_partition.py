"""Computes which partition of an internal topic stores a group or a transactional id (GC-1)."""

from __future__ import annotations

from functools import lru_cache

_INT32 = 2**32
_SMALLEST = -(2**31)


@lru_cache(maxsize=10_000)  # a group commits many times
def java_hash(text: str) -> int:
    """Compute Java's `String.hashCode`, a 32-bit polynomial in 31 over UTF-16 units."""
    units = text.encode("utf-16-be", "surrogatepass")
    result = 0
    for i in range(0, len(units), 2):
        result = (31 * result + (units[i] << 8 | units[i + 1])) % _INT32
    return result - _INT32 if result >= -_SMALLEST else result


def partition_of(key: str, partitions: int) -> int:
    """Return the partition for a key. As in Kafka, the smallest possible hash is replaced by 0."""
    hashed = java_hash(key)
    return 0 if hashed == _SMALLEST else abs(hashed) % partitions
