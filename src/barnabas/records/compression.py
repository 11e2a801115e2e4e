"""Compresses record batches, and decompresses them up to a size limit.

    id  name    written                                   read
    1   gzip    one member, no name, time 0               up to 16 members
    2   snappy  xerial stream of 32 KiB blocks            xerial, or one raw block (librdkafka)
    3   lz4     frame, 64 KiB independent blocks          one frame of independent blocks, as Java
    4   zstd    frame                                     frames with or without content size

Invariant: for any input, `decompress` returns at most `limit_bytes` bytes, needs about three times
that memory for a short time, and raises no exception other than `CorruptData`. In each of these
formats, a few hundred bytes can declare a size of several gigabytes. `decompress` therefore
allocates the buffer itself. Its size is the maximum that the framing allows (`frames`), but never
above the limit.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from struct import Struct
from typing import Protocol

import cramjam

from barnabas.errors import CorruptData
from barnabas.records.crc32c import Buffer
from barnabas.records.frames import (
    XERIAL_HEADER,
    gzip_bytes,
    lz4_bytes,
    snappy_blocks,
    snappy_bytes,
    zstd_bytes,
)

NONE, GZIP, SNAPPY, LZ4, ZSTD = range(5)

CODEC_NAMES = ("none", "gzip", "snappy", "lz4", "zstd")
"""Kafka's codec names, as used in `compression.type`. The index is the number of the codec."""

_GZIP_FRAME = 16 + zlib.MAX_WBITS
_GZIP_LEVEL = 6
_GZIP_MEMBERS = 16  # clients write one; each further one copies the remaining data
_ZSTD_LEVEL = 3
_LZ4_FAST_LEVEL = 1
_LZ4_LEVELS = range(3, 13)  # the slow compressor; lower levels select the fast one
_JAVA_LZ4_FAST_LEVEL = 9  # Java's default, which means "the fast compressor" (KIP-390)

_XERIAL_BLOCK_BYTES = 32 * 1024

_INT32 = Struct(">i")

_FULL = "failed to write whole buffer"
"""The error message that the library raises if a buffer is too small."""


class PlainTooLarge(CorruptData):
    """Raised if the decompressed size exceeds the caller's limit. The data may be intact."""


def compress(codec: int, data: Buffer, level: int | None = None) -> bytes:
    """Compress `data` with the framing that Java clients expect. With NONE, the data is only
    copied.

    `level` is a value of Kafka's `compression.<codec>.level`. If it is None, the same level is used
    as in producers.
    """
    if codec == NONE:
        return bytes(data)
    if codec == GZIP:
        gzip = zlib.compressobj(_GZIP_LEVEL if level is None else level, zlib.DEFLATED, _GZIP_FRAME)
        return gzip.compress(data) + gzip.flush()
    if codec == SNAPPY:
        return b"".join(_xerial_blocks(memoryview(data)))
    if codec == LZ4:
        # Java rejects frames with dependent blocks, and the library's default level is slow.
        lz4 = cramjam.lz4.Compressor(
            level=_lz4_level(level), content_checksum=False, block_linked=False
        )
        lz4.compress(bytes(data))
        return bytes(lz4.finish())
    if codec == ZSTD:
        return bytes(cramjam.zstd.compress(data, _ZSTD_LEVEL if level is None else level))
    raise ValueError(f"unknown codec {codec}")


def _lz4_level(level: int | None) -> int:
    """Return the library's level for one of Java's levels. In Java, all levels from 1 to 17 except
    9 use the slow compressor.
    """
    if level is None or level == _JAVA_LZ4_FAST_LEVEL:
        return _LZ4_FAST_LEVEL
    return min(max(level, _LZ4_LEVELS[0]), _LZ4_LEVELS[-1])


def decompress(codec: int, data: Buffer, limit_bytes: int) -> bytes:
    """Decompress `data` and return the result.

    Raises CorruptData if the data is malformed, or PlainTooLarge if the result would exceed
    `limit_bytes`.
    """
    try:
        if codec == NONE:
            plain = bytes(data)
        elif codec == GZIP:
            plain = _gunzip(data, limit_bytes)
        elif codec == SNAPPY:
            plain = _unsnappy(memoryview(data), limit_bytes)
        elif codec == LZ4:
            plain = _unpack(cramjam.lz4, data, lz4_bytes(data), limit_bytes)
        elif codec == ZSTD:
            plain = _unpack(cramjam.zstd, data, zstd_bytes(data), limit_bytes)
        else:
            raise CorruptData(f"unknown codec {codec}")
    except (cramjam.DecompressionError, zlib.error) as cause:
        raise CorruptData(f"not {CODEC_NAMES[codec]} data: {cause}") from cause
    if len(plain) > limit_bytes:
        raise _too_large(limit_bytes)
    return plain


def stated_bytes(codec: int, data: memoryview) -> int:
    """Return the decompressed size that the framing declares. Except for gzip, this is an upper
    limit.

    The data is not decompressed. Raises CorruptData if the framing is invalid.
    """
    if codec == LZ4:
        return lz4_bytes(data)
    if codec == ZSTD:
        return zstd_bytes(data)
    if codec == SNAPPY:
        return snappy_bytes(data)
    if codec == GZIP:
        return gzip_bytes(data)
    raise CorruptData(f"unknown codec {codec}")


def _too_large(limit_bytes: int) -> PlainTooLarge:
    return PlainTooLarge(f"decompresses to more than {limit_bytes} bytes")


def _gunzip(data: Buffer, limit_bytes: int) -> bytes:
    plain = b""
    for _ in range(_GZIP_MEMBERS):
        member = zlib.decompressobj(_GZIP_FRAME)
        unpacked = member.decompress(data, limit_bytes + 1 - len(plain))
        # Clients write only one member. Do not copy it.
        plain = plain + unpacked if plain else unpacked
        if len(plain) > limit_bytes:
            raise _too_large(limit_bytes)
        # zlib does not report an error if the stream is truncated.
        if not member.eof:
            raise zlib.error("the stream ends early")
        data = member.unused_data
        if not data:
            return plain
    raise zlib.error(f"more than {_GZIP_MEMBERS} members")


def _xerial_blocks(data: memoryview) -> Iterator[bytes]:
    yield XERIAL_HEADER
    for at in range(0, len(data), _XERIAL_BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(data[at : at + _XERIAL_BLOCK_BYTES]))
        yield _INT32.pack(len(block))
        yield block


def _unsnappy(data: memoryview, limit_bytes: int) -> bytes:
    blocks = list(snappy_blocks(data))
    # Each block declares its decompressed size, so check the sizes before decompressing.
    if sum(size for size, _ in blocks) > limit_bytes:
        raise _too_large(limit_bytes)
    return b"".join([cramjam.snappy.decompress_raw(block) for _, block in blocks])


class _Codec(Protocol):
    """The functions of a cramjam module that are used here."""

    def decompress_into(self, data: Buffer, output: bytearray, /) -> int: ...


def _unpack(codec: _Codec, data: Buffer, bound: int, limit_bytes: int) -> bytes:
    """Decompress data whose framing limits it to `bound` bytes. The result has at most
    `limit_bytes`.
    """
    plain = bytearray(min(bound, limit_bytes))
    try:
        size = codec.decompress_into(data, plain)
    except cramjam.DecompressionError as cause:
        # The buffer is too small. If the framing does not allow more than the buffer can contain,
        # the data contradicts itself.
        if bound > limit_bytes and str(cause) == _FULL:
            raise _too_large(limit_bytes) from None
        raise
    return bytes(memoryview(plain)[:size])
