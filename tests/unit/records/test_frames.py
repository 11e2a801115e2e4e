"""The framing of compressed data: what it says before anything is unpacked, and what is refused."""

from __future__ import annotations

from struct import pack

import cramjam
import pytest

from barnabas.errors import CorruptData
from barnabas.records.compression import (
    CODEC_NAMES,
    GZIP,
    LZ4,
    SNAPPY,
    ZSTD,
    compress,
    decompress,
    stated_bytes,
)
from barnabas.records.frames import MAX_BLOCKS, XERIAL_HEADER, lz4_bytes, lz4_header_checksum

TEXT = b"".join(b'{"user":%d,"page":"/index.html"}' % i for i in range(9000))
CODECS = pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4, ZSTD], ids=CODEC_NAMES[1:])
SKIPPABLE = b"\x50\x2a\x4d\x18\x03\x00\x00\x00abc"


def lz4_frame(flags: int, block: int, extra: bytes, *blocks: bytes) -> bytes:
    descriptor = bytes((flags, block)) + extra
    checksum = bytes((lz4_header_checksum(descriptor),))
    return b"\x04\x22\x4d\x18" + descriptor + checksum + b"".join(blocks) + bytes(4)


def lz4_stored(data: bytes) -> bytes:
    return pack("<I", len(data) | 1 << 31) + data


@CODECS
@pytest.mark.parametrize("size", [0, 1, 1000, len(TEXT)])
def test_the_framing_bounds_what_is_inside(codec: int, size: int) -> None:
    packed = memoryview(compress(codec, TEXT[:size]))
    stated = stated_bytes(codec, packed)
    assert stated >= size
    assert stated < 255 * 20 + 256 * 1024 + size
    if codec in (GZIP, SNAPPY):
        assert stated == size


@CODECS
def test_what_follows_the_end_is_refused(codec: int) -> None:
    packed = compress(codec, TEXT[:300])
    with pytest.raises(CorruptData):
        decompress(codec, packed + b"\x01\x02\x03", 10**6)
    if codec != GZIP:  # its trailer is the last bytes, whatever they are
        with pytest.raises(CorruptData):
            stated_bytes(codec, memoryview(packed + b"\x01\x02\x03"))


def test_lz4_is_one_frame_as_java_reads_it() -> None:
    packed = compress(LZ4, b"x")
    for more in (packed, SKIPPABLE, bytes(1)):
        with pytest.raises(CorruptData, match="an lz4 frame ends at byte"):
            decompress(LZ4, packed + more, 100)
    with pytest.raises(CorruptData, match="not an lz4 frame"):
        decompress(LZ4, SKIPPABLE + packed, 100)


def test_an_lz4_frame_says_what_java_would_refuse() -> None:
    good = lz4_frame(0x60, 0x40, b"", lz4_stored(b"hello"))
    assert good[6] == 0x82, "as every client sends it"
    assert decompress(LZ4, good, 100) == b"hello"
    linked, version, reserved = 0x40, 0xA0, 0x62
    for flags in (linked, version, reserved, 0x61):
        with pytest.raises(CorruptData, match="flags"):
            lz4_bytes(lz4_frame(flags, 0x40, b"", lz4_stored(b"hello")))
    for block in (0x30, 0xC0, 0x41):
        with pytest.raises(CorruptData, match="flags"):
            lz4_bytes(lz4_frame(0x60, block, b"", lz4_stored(b"hello")))
    damaged = bytearray(good)
    damaged[6] ^= 1
    with pytest.raises(CorruptData, match="checksum"):
        lz4_bytes(bytes(damaged))


def test_an_lz4_frame_states_its_size() -> None:
    stated = lz4_frame(0x68, 0x40, pack("<Q", 5), lz4_stored(b"hello"))
    assert lz4_bytes(stated) == 5
    assert decompress(LZ4, stated, 5) == b"hello"
    with pytest.raises(CorruptData, match="an lz4 frame declares"):
        lz4_bytes(lz4_frame(0x68, 0x40, pack("<Q", 6), lz4_stored(b"hello")))
    with pytest.raises(CorruptData, match="at most 65536"):
        lz4_bytes(lz4_frame(0x60, 0x40, b"", lz4_stored(bytes(65537))))


def test_a_zstd_frame_says_what_is_wrong_with_it() -> None:
    magic, empty_last = b"\x28\xb5\x2f\xfd", b"\x01\x00\x00"
    assert stated_bytes(ZSTD, memoryview(magic + b"\x00\x58" + empty_last)) == 0
    refused = {
        b"\x08\x58" + empty_last: "reserved",
        b"\x00\x89" + empty_last: "window",
        b"\x00\x58" + b"\x07\x00\x00": "kind 3",
        b"\x00\x58" + b"\x05\x00\xff": "block of kind 2",
        b"\x60\x05\x01" + empty_last: "declares",
    }
    for frame, words in refused.items():
        with pytest.raises(CorruptData, match=words):
            stated_bytes(ZSTD, memoryview(magic + frame))
    # The largest window, which `compression.zstd.level=22` asks for, is fine.
    assert decompress(ZSTD, magic + b"\x00\x88" + b"\x29\x00\x00hello", 10) == b"hello"


def test_blocks_of_nothing_are_not_worth_their_time() -> None:
    block = bytes(cramjam.snappy.compress_raw(b""))
    snappy = XERIAL_HEADER + (pack(">i", len(block)) + block) * (MAX_BLOCKS + 1)
    lz4 = lz4_frame(0x60, 0x40, b"", lz4_stored(b"x") * (MAX_BLOCKS + 1))
    zstd = b"\x28\xb5\x2f\xfd\x00\x58" + bytes(3 * MAX_BLOCKS) + b"\x01\x00\x00"
    for codec, data in ((SNAPPY, snappy), (LZ4, lz4), (ZSTD, zstd), (ZSTD, SKIPPABLE * 20_000)):
        with pytest.raises(CorruptData, match="more than 10000 compressed blocks"):
            stated_bytes(codec, memoryview(data))


@CODECS
def test_what_is_cut_or_changed_has_a_verdict(codec: int) -> None:
    packed = compress(codec, TEXT[:300])
    for size in range(len(packed)):
        for data in (packed[:size], packed[:size] + b"\xff" + packed[size + 1 :]):
            try:
                stated_bytes(codec, memoryview(data))
            except CorruptData:
                continue
