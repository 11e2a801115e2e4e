"""Computes Kafka's murmur2, by which all Kafka clients map keys to partitions.

It is the 32-bit MurmurHash2 by Austin Appleby, computed over the bytes of the key with Kafka's
seed.
"""

from __future__ import annotations

from struct import unpack_from

_SEED = 0x9747B28C
_M = 0x5BD1E995
_MASK = 0xFFFFFFFF


def murmur2(data: bytes) -> int:
    """Return the hash as an unsigned 32-bit number. Java reads the same bits as a signed number."""
    size = len(data)
    hashed = _SEED ^ size
    whole = size >> 2
    for word in unpack_from(f"<{whole}I", data):
        word = word * _M & _MASK
        word = (word ^ word >> 24) * _M & _MASK
        hashed = hashed * _M & _MASK ^ word
    tail = data[whole << 2 :]
    # The 3, 2 or 1 remaining bytes, if any, form one little-endian number.
    if tail:
        hashed = (hashed ^ int.from_bytes(tail, "little")) * _M & _MASK
    hashed = (hashed ^ hashed >> 13) * _M & _MASK
    return hashed ^ hashed >> 15


def partition_for_key(key: bytes, partition_count: int) -> int:
    """Return the partition for a key: the hash without its sign bit, modulo `partition_count`."""
    return (murmur2(key) & 0x7FFFFFFF) % partition_count
