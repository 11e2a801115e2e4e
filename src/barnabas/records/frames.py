"""Reads the framing of compressed data to find the maximum decompressed size without decompressing
the data.

    codec   unpacked size                    source
    gzip    its size modulo 2^32             the trailer of the last member; members are not bounded
    snappy  exact                            the size before each raw block
    lz4     an upper limit                   the stated size, or the blocks
    zstd    an upper limit                   the stated size, or the blocks, of every frame

Every byte must be part of the framing or of a block. Any bytes after the end are rejected, because
a library might decompress them without counting them. The number of blocks is limited to far more
than any client writes, because reading the sizes of very small blocks takes longer than
decompressing them.

For any bytes, the result is either a number or `CorruptData`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from struct import Struct, error

import cramjam

from barnabas.errors import CorruptData
from barnabas.records.crc32c import Buffer

XERIAL_MAGIC = b"\x82SNAPPY\x00"
XERIAL_HEADER = XERIAL_MAGIC + bytes(
    (0, 0, 0, 1, 0, 0, 0, 1)
)  # version 1, which readers of version 1 can read
MAX_BLOCKS = 10_000
"""The maximum number of blocks. Reading the sizes of this many blocks takes about five
milliseconds. Clients write blocks of 32 KiB or more.
"""

_INT32 = Struct(">i")
_UINT32_LE = Struct("<I")
_UINT64_LE = Struct("<Q")

_GZIP_START = b"\x1f\x8b\x08"  # deflate, which is the only method
_GZIP_RESERVED = 0xE0
_GZIP_MIN_BYTES = 18

_LZ4_MAGIC = 0x184D2204
_LZ4_MAX_RATIO = 255  # each byte that extends a match adds this much
_LZ4_STORED = 1 << 31

_ZSTD_MAGIC = 0xFD2FB528
_SKIPPABLE_MAGIC, _SKIPPABLE_MASK = 0x184D2A50, 0xFFFFFFF0
_ZSTD_BLOCK_BYTES = 128 * 1024
_ZSTD_RESERVED = 0x08
_ZSTD_WINDOW_LOG_MAX = 27  # 128 MiB, as level 22 needs; Kafka does not read larger windows either


def gzip_bytes(data: Buffer) -> int:
    """Return the size that the last member declares. This is not an upper limit (RFC 1952).

    1f 8b 08 | flags | ... deflated ... | crc32 u32 | size u32
    """
    if len(data) < _GZIP_MIN_BYTES or bytes(data[:3]) != _GZIP_START or data[3] & _GZIP_RESERVED:
        raise CorruptData("not a gzip member")
    (size,) = _UINT32_LE.unpack_from(data, len(data) - 4)
    return int(size)


def snappy_bytes(data: memoryview) -> int:
    """Return the sum of the sizes declared by the raw blocks."""
    return sum(size for size, _ in snappy_blocks(data))


def snappy_blocks(data: memoryview) -> Iterator[tuple[int, memoryview]]:
    """Yield each raw block of a xerial stream with its decompressed size. Without a xerial header,
    the data is a single block.

    header, 16 bytes | size i32, raw block | ...
    """
    if data[: len(XERIAL_MAGIC)] != XERIAL_MAGIC:
        yield _raw_bytes(data), data
        return
    at = len(XERIAL_HEADER)
    if len(data) < at:
        raise CorruptData("a snappy stream ends in its header")
    for _ in range(MAX_BLOCKS):
        if at == len(data):
            return
        try:
            (size,) = _INT32.unpack_from(data, at)
        except error as cause:
            raise CorruptData("a snappy stream is cut") from cause
        at += _INT32.size
        if not 0 <= size <= len(data) - at:
            raise CorruptData(f"a snappy block of {size} bytes, but {len(data) - at} are left")
        block = data[at : at + size]
        yield _raw_bytes(block), block
        at += size
    if at != len(data):
        raise _too_many()


def _raw_bytes(block: memoryview) -> int:
    try:
        return int(cramjam.snappy.decompress_raw_len(block))
    except cramjam.DecompressionError as cause:
        raise CorruptData(f"not snappy data: {cause}") from cause


def lz4_bytes(data: Buffer) -> int:
    """Return the maximum decompressed size of `data`, which must be a single frame.

    magic u32 | FLG (bits 6-7 version 1, 5 independent blocks, 4 block checksums, 3 content size,
    2 content checksum, 1 reserved, 0 dictionary id) | BD (bits 4-6: block size 4^(4+n), n >= 4)
    | [content size u64] | [dictionary id u32] | header checksum u8
    | blocks: size u32 (top bit: stored), data, [checksum u32] ... | 0 u32 | [checksum u32]

    As in Kafka, there must be exactly one frame, with a correct header checksum and independent
    blocks. Java clients reject everything else, whereas a library would decompress any number of
    frames and skip some kinds of them.
    """
    try:
        return _lz4_bytes(data)
    except (error, IndexError) as cause:
        raise CorruptData("an lz4 frame is cut") from cause


def _lz4_bytes(data: Buffer) -> int:
    at = 15 if data[4] & 8 else 7
    block_bytes, stated, checksum_bytes, end_bytes = _lz4_header(bytes(data[:at]))
    bound = 0
    for _ in range(MAX_BLOCKS + 1):
        (size,) = _UINT32_LE.unpack_from(data, at)
        at += 4
        if size == 0:
            break
        stored = size & ~_LZ4_STORED
        if stored > block_bytes:
            raise CorruptData(f"an lz4 block of {stored} bytes; at most {block_bytes} are allowed")
        bound += stored if size != stored else min(block_bytes, stored * _LZ4_MAX_RATIO)
        at += stored + checksum_bytes
    else:
        raise _too_many()
    at += end_bytes
    if at != len(data):
        raise CorruptData(f"an lz4 frame ends at byte {at} of {len(data)}")
    if stated is None:
        return bound
    if stated > bound:
        raise CorruptData(f"an lz4 frame declares {stated} bytes, but can hold at most {bound}")
    return stated


@lru_cache(256)  # a producer's frames have similar beginnings
def _lz4_header(header: bytes) -> tuple[int, int | None, int, int]:
    """Return the block size, the content size if it is declared, and the sizes of both checksums.

    Raises CorruptData if Java would reject the frame.
    """
    (magic,) = _UINT32_LE.unpack_from(header)
    if magic != _LZ4_MAGIC:
        raise CorruptData("not an lz4 frame")
    flags, sizes, code = header[4], header[5], header[5] >> 4
    if flags & 0xE3 != 0x60 or sizes & 0x8F or code < 4:
        raise CorruptData(f"an lz4 frame with flags {flags:#04x} and {sizes:#04x}")
    if header[-1] != lz4_header_checksum(header[4:-1]):
        raise CorruptData("the header of an lz4 frame fails its checksum")
    stated = int(_UINT64_LE.unpack_from(header, 6)[0]) if flags & 8 else None
    return 1 << (8 + 2 * code), stated, 4 if flags & 16 else 0, 4 if flags & 4 else 0


def zstd_bytes(data: Buffer) -> int:
    """Return the maximum decompressed size of all frames in `data` (RFC 8878, section 3.1.1).

    magic u32 | descriptor (bits 6-7 content size, 5 single segment, 3 reserved, 2 checksum,
    0-1 dictionary id) | [window] | [dictionary id] | [content size]
    | blocks: 3 bytes, little endian: bit 0 last, 1-2 type (0 raw, 1 one byte repeated,
    2 compressed), 3-23 size; data ... | [checksum u32]
    """
    try:
        return _zstd_bytes(data)
    except (error, IndexError) as cause:
        raise CorruptData("a zstd frame is cut") from cause


def _zstd_bytes(data: Buffer) -> int:
    at = bound = blocks = 0
    total = len(data)
    if not total:
        raise CorruptData("no zstd frame")
    while at < total:
        blocks += 1  # frames, including skippable ones, take time as well
        (magic,) = _UINT32_LE.unpack_from(data, at)
        if magic & _SKIPPABLE_MASK == _SKIPPABLE_MAGIC:
            at += 8 + int(_UINT32_LE.unpack_from(data, at + 4)[0])
        elif magic == _ZSTD_MAGIC:
            has_checksum = data[at + 4] & 4
            stated, at = _zstd_header(data, at + 4)
            frame_bound = last = 0
            while not last:
                block = data[at] | data[at + 1] << 8 | data[at + 2] << 16
                last, kind, size = block & 1, block >> 1 & 3, block >> 3
                if size > _ZSTD_BLOCK_BYTES or kind == 3:
                    raise CorruptData(f"a zstd block of kind {kind} and {size} bytes")
                frame_bound += size if kind < 2 else _ZSTD_BLOCK_BYTES
                at += 3 + (1 if kind == 1 else size)
                blocks += 1
                if blocks > MAX_BLOCKS:
                    raise _too_many()
            at += 4 if has_checksum else 0
            if stated is not None and stated > frame_bound:
                raise CorruptData(
                    f"a zstd frame declares {stated} bytes but can hold at most {frame_bound}"
                )
            bound += frame_bound if stated is None else stated
        else:
            raise CorruptData("not a zstd frame")
        if blocks > MAX_BLOCKS:
            raise _too_many()
    if at != total:
        raise CorruptData(f"the zstd frames end at byte {at} of {total}")
    return bound


def _zstd_header(data: Buffer, at: int) -> tuple[int | None, int]:
    """Return the content size that a frame declares and the position of its first block."""
    descriptor = data[at]
    if descriptor & _ZSTD_RESERVED:
        raise CorruptData("a zstd frame has a reserved bit set")
    at += 1
    is_single_segment = descriptor >> 5 & 1
    if not is_single_segment:
        window_log = 10 + (data[at] >> 3)
        if window_log > _ZSTD_WINDOW_LOG_MAX or (
            window_log == _ZSTD_WINDOW_LOG_MAX and data[at] & 7
        ):
            raise CorruptData(f"a zstd frame wants a window of 2^{window_log} bytes or more")
        at += 1
    at += (0, 1, 2, 4)[descriptor & 3]
    size_bytes = (is_single_segment, 2, 4, 8)[descriptor >> 6]
    if not size_bytes:
        return None, at
    end = at + size_bytes
    stated = int.from_bytes(data[at:end], "little") + (256 if size_bytes == 2 else 0)
    return stated, end


def _too_many() -> CorruptData:
    return CorruptData(f"more than {MAX_BLOCKS} compressed blocks")


def lz4_header_checksum(descriptor: bytes) -> int:
    """Return the checksum byte for an LZ4 frame header. It covers the fields of the header from FLG
    on.
    """
    return _xxh32(descriptor) >> 8 & 0xFF


def _xxh32(data: bytes) -> int:
    """Return the 32-bit xxHash, with seed 0, of data that is shorter than sixteen bytes."""
    mask = 0xFFFFFFFF
    state = 374761393 + len(data)
    words = len(data) // 4 * 4
    for at in range(0, words, 4):
        state += int.from_bytes(data[at : at + 4], "little") * 3266489917
        state = _rotate(state & mask, 17) * 668265263 & mask
    for byte in data[words:]:
        state = _rotate(state + byte * 374761393 & mask, 11) * 2654435761 & mask
    state = (state ^ state >> 15) * 2246822519 & mask
    state = (state ^ state >> 13) * 3266489917 & mask
    return state ^ state >> 16


def _rotate(word: int, bits: int) -> int:
    return (word << bits | word >> 32 - bits) & 0xFFFFFFFF
