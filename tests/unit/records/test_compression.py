"""The codecs: what others write is read, what we write others read, and nothing explodes."""

from __future__ import annotations

import gzip
import tracemalloc
import zlib

import cramjam
import pytest

from barnabas.errors import CorruptData
from barnabas.records.compression import (
    CODEC_NAMES,
    GZIP,
    LZ4,
    NONE,
    SNAPPY,
    ZSTD,
    compress,
    decompress,
)

TEXT = b"".join(b'{"user":%d,"page":"/index.html"}' % i for i in range(5000))
SAMPLES = [b"", b"x", TEXT[:100], TEXT, bytes(range(256)) * 500]


@pytest.mark.parametrize("codec", range(5), ids=CODEC_NAMES)
@pytest.mark.parametrize("plain", SAMPLES, ids=len)
def test_what_was_compressed_comes_back(codec: int, plain: bytes) -> None:
    for data in (plain, bytearray(plain), memoryview(plain)):
        packed = compress(codec, data)
        assert decompress(codec, memoryview(packed), len(plain)) == plain


def test_frames_are_those_that_java_reads() -> None:
    assert compress(GZIP, TEXT)[:3] == b"\x1f\x8b\x08"
    assert compress(SNAPPY, TEXT)[:16] == b"\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01"
    lz4 = compress(LZ4, TEXT)
    assert lz4[:4] == b"\x04\x22\x4d\x18"
    assert lz4[4] & 0x20  # blocks are independent
    assert lz4[5] == 0x40  # of 64 KiB
    assert compress(ZSTD, TEXT)[:4] == b"\x28\xb5\x2f\xfd"


def test_snappy_is_read_without_the_stream_that_java_puts_around_it() -> None:
    assert decompress(SNAPPY, bytes(cramjam.snappy.compress_raw(TEXT)), 10**6) == TEXT


def test_gzip_is_read_in_several_members() -> None:
    assert decompress(GZIP, gzip.compress(b"one ") + gzip.compress(b"two"), 100) == b"one two"


def test_zstd_is_read_without_content_size_and_in_several_frames() -> None:
    stream = cramjam.zstd.Compressor(3)
    stream.compress(TEXT)
    sizeless = bytes(stream.finish())
    skippable = b"\x50\x2a\x4d\x18\x03\x00\x00\x00abc"
    assert decompress(ZSTD, sizeless + skippable + sizeless, 10**6) == TEXT * 2


def test_a_zstd_frame_as_java_streams_it() -> None:
    frame = bytes.fromhex("28b52ffd005829000068656c6c6f")  # window 0x58, one raw block
    assert decompress(ZSTD, frame, 100) == b"hello"


@pytest.mark.thorough
@pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4, ZSTD], ids=CODEC_NAMES[1:])
@pytest.mark.parametrize("limit", [10, 1000, 10**6])
def test_a_bomb_is_refused_before_it_takes_memory(codec: int, limit: int) -> None:
    bomb = compress(codec, bytes(64 * 2**20))
    tracemalloc.start()
    with pytest.raises(CorruptData):
        decompress(codec, bomb, limit)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 * limit + 2**20


@pytest.mark.parametrize("codec", [SNAPPY, LZ4, ZSTD], ids=CODEC_NAMES[2:])
def test_the_limit_is_met_exactly(codec: int) -> None:
    packed = compress(codec, TEXT)
    assert decompress(codec, packed, len(TEXT)) == TEXT
    with pytest.raises(CorruptData):
        decompress(codec, packed, len(TEXT) - 1)


@pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4, ZSTD], ids=CODEC_NAMES[1:])
def test_what_is_cut_is_corrupt_data(codec: int) -> None:
    packed = compress(codec, TEXT[:300])
    # (Cut between the blocks of a snappy stream, it only is a shorter one.)
    for size in range(1 if codec != SNAPPY else 17, len(packed)):
        with pytest.raises(CorruptData):
            decompress(codec, packed[:size], 10**6)


def test_many_members_are_not_worth_their_time() -> None:
    with pytest.raises(CorruptData, match="members"):
        decompress(GZIP, gzip.compress(b"") * 1000, 10**6)
    with pytest.raises(CorruptData):
        decompress(GZIP, zlib.compress(b"another wrapper"), 10**6)


def test_there_are_five_codecs() -> None:
    with pytest.raises(CorruptData, match="unknown codec 5"):
        decompress(5, b"", 1)
    with pytest.raises(ValueError, match="5"):
        compress(5, b"")
    assert CODEC_NAMES[NONE] == "none"
