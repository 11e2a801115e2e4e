"""The 61 bytes of a batch's header: golden vectors, in-place patches, torn and hostile ends."""

from __future__ import annotations

import pytest

from barnabas.errors import CorruptData
from barnabas.records.batch import (
    BatchHeader,
    assign_in_place,
    iterate_batches,
    read_header,
    seal,
    stamp_in_place,
    verify_crc,
)
from barnabas.records.record import BatchBuilder, iterate_records

# One record (key k, value v, header h=1, time 1700000000000) in leader epoch 0, as Kafka stores it.
GOLDEN = bytes.fromhex(
    "00000000000000000000003e0000000002675a95fd0000000000000000018bcfe568000000018bcfe56800"
    "ffffffffffffffffffffffffffff0000000118000000026b02760202680231"
)


def test_st_1_a_built_batch_has_kafkas_bytes() -> None:
    builder = BatchBuilder()
    builder.append(1700000000000, b"k", b"v", [("h", b"1")])
    batch = bytearray(builder.build())
    assign_in_place(batch, 0, base_offset=0, leader_epoch=0)
    assert batch.hex() == GOLDEN.hex()


def test_a_header_reads_as_it_was_written() -> None:
    header = read_header(GOLDEN)
    assert header == BatchHeader(
        base_offset=0,
        batch_length=62,
        partition_leader_epoch=0,
        magic=2,
        crc=0x675A95FD,
        attributes=0,
        last_offset_delta=0,
        base_timestamp=1700000000000,
        max_timestamp=1700000000000,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        record_count=1,
    )
    assert header.size_bytes == len(GOLDEN)
    assert seal(header, GOLDEN[61:]) == GOLDEN
    assert verify_crc(GOLDEN, 0, header)


def test_offset_and_epoch_are_outside_of_the_checksum() -> None:
    batch = bytearray(GOLDEN)
    assign_in_place(memoryview(batch), 0, base_offset=2**40, leader_epoch=9)
    header = read_header(batch)
    assert (header.base_offset, header.partition_leader_epoch) == (2**40, 9)
    assert verify_crc(batch, 0, header)


def test_every_other_byte_is_inside_of_it() -> None:
    for at in range(17, len(GOLDEN)):
        damaged = bytearray(GOLDEN)
        damaged[at] ^= 1
        assert not verify_crc(damaged, 0, read_header(damaged)), at


def test_log_append_time_replaces_the_times_of_all_records() -> None:
    builder = BatchBuilder()
    for timestamp in (5, 9, 7):
        builder.append(timestamp, None, b"x")
    batch = bytearray(builder.build())
    stamp_in_place(batch, 0, read_header(batch), now_ms=1234)
    header = read_header(batch)
    assert header.has_log_append_time
    assert (header.base_timestamp, header.max_timestamp) == (5, 1234)
    assert [(r.timestamp, r.timestamp_type) for r in iterate_records(batch)] == [(1234, 1)] * 3


def test_a_torn_last_batch_is_left_out() -> None:
    for kept in range(len(GOLDEN)):
        found = list(iterate_batches(GOLDEN + GOLDEN[:kept]))
        assert [position for position, _ in found] == [0]
    assert len(list(iterate_batches(GOLDEN + GOLDEN))) == 2


@pytest.mark.parametrize(
    ("at", "octets", "complaint"),
    [
        (8, b"\x00\x00\x00\x30", "invalid batch length 48"),
        (8, b"\xff\xff\xff\xff", "invalid batch length -1"),
        (16, b"\x03", "magic 3"),
        (16, b"\xff", "magic -1"),
    ],
)
def test_impossible_headers_are_corrupt_data(at: int, octets: bytes, complaint: str) -> None:
    damaged = bytearray(GOLDEN)
    damaged[at : at + len(octets)] = octets
    with pytest.raises(CorruptData, match=complaint):
        read_header(damaged)


@pytest.mark.parametrize("size", [0, 1, 16, 60])
def test_a_header_that_is_cut_is_corrupt_data(size: int) -> None:
    with pytest.raises(CorruptData):
        read_header(GOLDEN[:size])
