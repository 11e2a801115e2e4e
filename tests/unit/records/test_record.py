"""Building batches and walking their records."""

from __future__ import annotations

import pytest

from barnabas.errors import CorruptData
from barnabas.records.batch import HEADER_BYTES, BatchHeader, read_header, seal
from barnabas.records.compression import CODEC_NAMES, GZIP, ZSTD, compress
from barnabas.records.control_records import COMMIT, Marker, build_marker
from barnabas.records.record import BatchBuilder, Record, iterate_records, record_size_bound


def _batch(body: bytes, count: int, codec: int = 0) -> bytes:
    """A batch with a valid checksum around any bytes."""
    header = BatchHeader(0, 0, -1, 2, 0, codec, max(0, count - 1), 0, 0, -1, -1, -1, count)
    return seal(header, body)


@pytest.mark.parametrize("codec", range(5), ids=CODEC_NAMES)
def test_what_was_appended_is_read(codec: int) -> None:
    records = [
        Record(70, 1700000000000, b"key", b"value"),
        Record(71, 1700000000000 - 400 * 86400000, None, None),
        Record(72, 0, b"", b""),
        Record(73, 4102444800000, None, b"x" * 100_000, (("a", b"1"), ("a", None), ("ü€", b""))),
    ]
    builder = BatchBuilder(codec)
    for record in records:
        builder.append(record.timestamp, record.key, record.value, record.headers)
    batch = builder.build(base_offset=70)
    assert list(iterate_records(batch)) == records
    assert read_header(batch).codec == codec
    assert read_header(batch).max_timestamp == 4102444800000


def test_sizes_are_those_that_a_producer_needs() -> None:
    builder = BatchBuilder()
    assert builder.size_bytes == HEADER_BYTES
    for i in range(200):
        headers = [("header", b"v" * i)] * (i % 3)
        before = builder.size_bytes
        size = builder.append(10**12 + i * 10**9, b"k" * i, b"v" * (i * 50), headers)
        assert size == builder.size_bytes
        assert size - before <= record_size_bound(b"k" * i, b"v" * (i * 50), headers)
    assert len(builder.build()) == builder.size_bytes
    assert builder.record_count == 200


def test_pr_6_sequences_may_be_given_after_the_records() -> None:
    builder = BatchBuilder()
    builder.append(1, None, b"a")
    builder.producer_id, builder.producer_epoch, builder.base_sequence = 4000, 3, 17
    header = read_header(builder.build())
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (4000, 3, 17)


def test_control_batches_hold_nothing_for_users() -> None:
    builder = BatchBuilder()
    builder.append(1, None, b"a")
    marker = build_marker(Marker(1, 2, COMMIT, 0), producer_id=9, producer_epoch=0)
    values = [r.value for r in iterate_records(builder.build() + marker + builder.build(2))]
    assert values == [b"a", b"a"]


def test_a_wrong_checksum_is_noticed_unless_unchecked() -> None:
    builder = BatchBuilder()
    builder.append(1, None, b"abc")
    damaged = bytearray(builder.build())
    damaged[-2] ^= 1
    with pytest.raises(CorruptData, match="checksum"):
        list(iterate_records(damaged))
    assert [r.value for r in iterate_records(damaged, check_crc=False)] == [b"abb"]


@pytest.mark.parametrize(
    ("body", "count"),
    [
        (b"", 1),
        (b"\x0c\x00\x00\x00\x01\x01", 1),  # the record ends before its header count
        (b"\x0c\x00\x00\x00\x01\x01\x00\x00", 1),  # a byte behind the last record
        (b"\x0c\x00\x00\x00\x01\x01\x00", 2),  # fewer records than promised
        (b"\x0c\x00\x00\x00\x7e\x01\x00", 1),  # a key longer than the record
        (b"\x0c\x00\x00\x00\x01\x01\x7f", 1),  # a negative number of headers
        (b"\x0c\x00\x00\x00\x01\x01\x7e", 1),  # more headers than bytes
        (b"\xff" * 20, 1),  # a varint without an end
        (b"\x0b\x00\x00\x00\x01\x01\x00", 1),  # a negative length
        (b"\x0c\x00\x00\x00\x01\x01\x00", -1),
        (b"\x0e\x00\x00\x00\x01\x01\x00\x0c\x00\x00\x02\x01\x01\x00", 2),  # one is too long
    ],
)
def test_records_that_cannot_be_are_corrupt_data(body: bytes, count: int) -> None:
    with pytest.raises(CorruptData, match="the batch at offset 0"):
        list(iterate_records(_batch(body, count)))


def test_a_header_key_that_is_no_text_does_not_stop_the_reader() -> None:
    body = b"\x14\x00\x00\x00\x01\x01\x02\x02\xff\x02v"
    assert next(iterate_records(_batch(body, 1))).headers == (("\ufffd", b"v"),)


@pytest.mark.parametrize("codec", [GZIP, ZSTD])
def test_a_batch_that_explodes_is_refused(codec: int) -> None:
    bomb = _batch(compress(codec, bytes(50_000_000)), 1, codec)
    assert len(bomb) < 100_000
    with pytest.raises(CorruptData, match=r"more than 1000000 bytes|not zstd data"):
        list(iterate_records(bomb, limit_bytes=1_000_000))
