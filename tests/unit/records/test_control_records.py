"""Transaction markers."""

from __future__ import annotations

import pytest

from barnabas.errors import CorruptData
from barnabas.records.batch import BatchHeader, assign_in_place, read_header, seal
from barnabas.records.control_records import ABORT, COMMIT, Marker, build_marker, read_marker
from barnabas.records.record import BatchBuilder

# COMMIT at offset 5 in leader epoch 3, producer 4000 epoch 0, coordinator epoch 7, as Kafka writes.
GOLDEN = (
    "0000000000000005000000420000000302b8bf7e9f0030000000000000018bcfe568000000018bcfe56800"
    "0000000000000fa00000ffffffff000000012000000008000000010c00000000000700"
)


def test_st_1_a_marker_has_kafkas_bytes() -> None:
    batch = bytearray(build_marker(Marker(5, 1700000000000, COMMIT, 7), 4000, 0))
    assign_in_place(batch, 0, base_offset=5, leader_epoch=3)
    assert batch.hex() == GOLDEN


@pytest.mark.parametrize("kind", [ABORT, COMMIT])
def test_a_marker_is_read_as_it_was_built(kind: int) -> None:
    marker = Marker(12, 34, kind, 56)
    batch = build_marker(marker, producer_id=1, producer_epoch=2)
    header = read_header(batch)
    assert header.is_control and header.is_transactional
    assert read_marker(batch, 0, header) == marker


def _control_batch(key: bytes, value: bytes) -> bytes:
    builder = BatchBuilder()
    builder.append(0, key, value)
    return seal(BatchHeader(0, 0, -1, 2, 0, 0x20, 0, 0, 0, -1, -1, -1, 1), builder.body)


def test_control_records_of_other_kinds_are_no_markers() -> None:
    leader_change = _control_batch(b"\x00\x00\x00\x02", b"")
    assert read_marker(leader_change, 0, read_header(leader_change)) is None


def test_a_batch_that_compaction_emptied_has_no_marker() -> None:
    empty = seal(BatchHeader(0, 0, -1, 2, 0, 0x30, 0, -1, -1, 1, 0, -1, 0), b"")
    assert read_marker(empty, 0, read_header(empty)) is None


@pytest.mark.parametrize(("key", "value"), [(b"\x00", b""), (b"\x00\x00\x00\x01", b"\x00")])
def test_a_cut_marker_is_corrupt_data(key: bytes, value: bytes) -> None:
    batch = _control_batch(key, value)
    with pytest.raises(CorruptData, match="truncated"):
        read_marker(batch, 0, read_header(batch))
