"""The codecs of record batches: compression and bounded decompression.

    id  name    written                                   read
    1   gzip    one member, no name, time 0               any number of members
    2   snappy  xerial stream of 32 KiB blocks            xerial, or one raw block (librdkafka)
    3   lz4     frame, 64 KiB independent blocks          any frame
    4   zstd    frame                                     frames with or without content size

Invariant: for any bytes `decompress` returns at most `limit_bytes` bytes, allocates little more
than that, and raises only `CorruptData`. A few hundred bytes can declare gigabytes in each of these
formats, so the size is checked before anything is allocated: lz4 and zstd frames are walked block
by block, which bounds the output by their headers.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from struct import Struct, error
from typing import Protocol

import cramjam

from barnabas.errors import CorruptData
from barnabas.records.crc32c import Buffer

NONE, GZIP, SNAPPY, LZ4, ZSTD = range(5)

CODEC_NAMES = ("none", "gzip", "snappy", "lz4", "zstd")
"""Kafka's names by codec number, as `compression.type` takes them."""

_GZIP_FRAME = 16 + zlib.MAX_WBITS
_GZIP_LEVEL = 6
_GZIP_MEMBERS = 16  # no client writes more than one; each costs a copy of the rest
_ZSTD_LEVEL = 3
_LZ4_FAST_LEVEL = 1
_LZ4_LEVELS = range(3, 13)  # of the slow compressor; below, the library takes the fast one
_JAVA_LZ4_FAST_LEVEL = 9  # Java's default, which it takes for "the fast compressor" (KIP-390)

_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER = _XERIAL_MAGIC + bytes((0, 0, 0, 1, 0, 0, 0, 1))  # version 1, readable by 1
_XERIAL_BLOCK_BYTES = 32 * 1024

_INT32 = Struct(">i")
_UINT32_LE = Struct("<I")

_LZ4_MAGIC = 0x184D2204
_ZSTD_MAGIC = 0xFD2FB528
_SKIPPABLE_MAGIC, _SKIPPABLE_MASK = 0x184D2A50, 0xFFFFFFF0
_ZSTD_BLOCK_BYTES = 128 * 1024


class PlainTooLarge(CorruptData):
    """The decompressed size exceeds the caller's limit; the data need not be damaged."""


def compress(codec: int, data: Buffer, level: int | None = None) -> bytes:
    """`data` in the codec's framing, as Java's clients read it; NONE copies.

    `level` is a value of Kafka's `compression.<codec>.level`; None is what producers use.
    """
    if codec == NONE:
        return bytes(data)
    if codec == GZIP:
        gzip = zlib.compressobj(_GZIP_LEVEL if level is None else level, zlib.DEFLATED, _GZIP_FRAME)
        return gzip.compress(data) + gzip.flush()
    if codec == SNAPPY:
        return b"".join(_xerial_blocks(memoryview(data)))
    if codec == LZ4:
        # Java refuses dependent blocks, and the default level is a slow one.
        lz4 = cramjam.lz4.Compressor(
            level=_lz4_level(level), content_checksum=False, block_linked=False
        )
        lz4.compress(bytes(data))
        return bytes(lz4.finish())
    if codec == ZSTD:
        return bytes(cramjam.zstd.compress(data, _ZSTD_LEVEL if level is None else level))
    raise ValueError(f"unknown codec {codec}")


def _lz4_level(level: int | None) -> int:
    """The library's level for Java's, whose 1 to 17 except 9 mean the slow compressor."""
    if level is None or level == _JAVA_LZ4_FAST_LEVEL:
        return _LZ4_FAST_LEVEL
    return min(max(level, _LZ4_LEVELS[0]), _LZ4_LEVELS[-1])


def decompress(codec: int, data: Buffer, limit_bytes: int) -> bytes:
    """The decompressed bytes; CorruptData if the data is malformed, PlainTooLarge above
    `limit_bytes`."""
    try:
        if codec == NONE:
            plain = bytes(data)
        elif codec == GZIP:
            plain = _gunzip(data, limit_bytes)
        elif codec == SNAPPY:
            plain = _unsnappy(memoryview(data), limit_bytes)
        elif codec == LZ4:
            bound = sum(_lz4_block_bounds(data))
            plain = _bounded(cramjam.lz4, data, bound, limit_bytes)
        elif codec == ZSTD:
            bound = sum(_zstd_block_bounds(data))
            plain = _bounded(cramjam.zstd, data, bound, limit_bytes)
        else:
            raise CorruptData(f"unknown codec {codec}")
    except (cramjam.DecompressionError, zlib.error, error, IndexError) as cause:
        raise CorruptData(f"not {CODEC_NAMES[codec]} data: {cause}") from cause
    if len(plain) > limit_bytes:
        raise _too_large(limit_bytes)
    return plain


def _too_large(limit_bytes: int) -> PlainTooLarge:
    return PlainTooLarge(f"decompresses to more than {limit_bytes} bytes")


def _gunzip(data: Buffer, limit_bytes: int) -> bytes:
    plain = bytearray()
    for _ in range(_GZIP_MEMBERS):
        member = zlib.decompressobj(_GZIP_FRAME)
        plain += member.decompress(data, limit_bytes + 1 - len(plain))
        if len(plain) > limit_bytes:
            raise _too_large(limit_bytes)
        if not member.eof:
            raise zlib.error("the stream ends early")
        data = member.unused_data
        if not data:
            return bytes(plain)
    raise zlib.error(f"more than {_GZIP_MEMBERS} members")


def _xerial_blocks(data: memoryview) -> Iterator[bytes]:
    yield _XERIAL_HEADER
    for at in range(0, len(data), _XERIAL_BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(data[at : at + _XERIAL_BLOCK_BYTES]))
        yield _INT32.pack(len(block))
        yield block


def _unsnappy(data: memoryview, limit_bytes: int) -> bytes:
    if data[: len(_XERIAL_MAGIC)] != _XERIAL_MAGIC:
        return _unsnappy_block(data, limit_bytes)
    plain = bytearray()
    at = len(_XERIAL_HEADER)
    while at < len(data):
        (size,) = _INT32.unpack_from(data, at)
        at += _INT32.size
        if not 0 <= size <= len(data) - at:
            raise CorruptData(f"snappy block of {size} bytes in {len(data) - at}")
        plain += _unsnappy_block(data[at : at + size], limit_bytes - len(plain))
        at += size
    return bytes(plain)


def _unsnappy_block(block: memoryview, limit_bytes: int) -> bytes:
    if cramjam.snappy.decompress_raw_len(block) > limit_bytes:
        raise _too_large(limit_bytes)
    return bytes(cramjam.snappy.decompress_raw(block))


class _Codec(Protocol):
    """The functions of a cramjam module that are used here."""

    def decompress(self, data: Buffer, /) -> cramjam.Buffer: ...

    def decompress_into(self, data: Buffer, output: bytearray, /) -> int: ...


def _bounded(codec: _Codec, data: Buffer, bound: int, limit_bytes: int) -> bytes:
    """Decompress what cannot exceed `bound`; above the limit, into a buffer of the limit's size."""
    if bound <= limit_bytes:
        return bytes(codec.decompress(data))
    plain = bytearray(limit_bytes)
    try:
        size = codec.decompress_into(data, plain)
    except cramjam.DecompressionError as cause:
        raise _too_large(limit_bytes) from cause
    return bytes(memoryview(plain)[:size])


def _lz4_block_bounds(data: Buffer) -> Iterator[int]:
    """The most that each block of an LZ4 frame can hold.

    magic u32 | FLG (bit 4 block checksums, 3 content size, 2 content checksum, 0 dictionary id)
    | BD (bits 4-6: block size 4^(8+n)) | [content size u64] | [dictionary id u32] | header checksum
    | blocks: size u32 (top bit: stored), data, [checksum u32] ... | 0 u32 | [checksum u32]
    """
    (magic,) = _UINT32_LE.unpack_from(data)
    if magic != _LZ4_MAGIC:
        raise CorruptData("not an lz4 frame")
    flags, block_bytes = data[4], 1 << (8 + 2 * (data[5] >> 4 & 7))
    at = 7 + (8 if flags & 8 else 0) + (4 if flags & 1 else 0)
    checksum_bytes = 4 if flags & 16 else 0
    while True:
        (size,) = _UINT32_LE.unpack_from(data, at)
        if size == 0:
            return
        yield block_bytes
        at += 4 + (size & 0x7FFFFFFF) + checksum_bytes


def _zstd_block_bounds(data: Buffer) -> Iterator[int]:
    """The most that each block of the zstd frames in `data` can hold (RFC 8878, section 3.1.1).

    magic u32 | descriptor (bits 6-7 content size, 5 single segment, 2 checksum, 0-1 dictionary id)
    | [window] | [dictionary id] | [content size] | blocks: 3 bytes, little endian: bit 0 last,
    1-2 type (0 raw, 1 one byte repeated, 2 compressed), 3-23 size; data ... | [checksum u32]
    """
    at = 0
    while at < len(data):
        (magic,) = _UINT32_LE.unpack_from(data, at)
        if magic & _SKIPPABLE_MASK == _SKIPPABLE_MAGIC:
            at += 8 + int(_UINT32_LE.unpack_from(data, at + 4)[0])
            continue
        if magic != _ZSTD_MAGIC:
            raise CorruptData("not a zstd frame")
        descriptor = data[at + 4]
        single_segment = descriptor >> 5 & 1
        at += 5 + (1 - single_segment) + (0, 1, 2, 4)[descriptor & 3]
        at += (single_segment, 2, 4, 8)[descriptor >> 6]
        last = 0
        while not last:
            block = data[at] | data[at + 1] << 8 | data[at + 2] << 16
            last, kind, size = block & 1, block >> 1 & 3, block >> 3
            yield size if kind < 2 else _ZSTD_BLOCK_BYTES
            at += 3 + (1 if kind == 1 else size)
        at += 4 if descriptor & 4 else 0
