"""Messages of magic 0 and 1, as old directories hold them. (Kafka's own: conformance tests.)"""

from __future__ import annotations

import zlib
from struct import pack

import pytest

from barnabas.errors import CorruptData
from barnabas.records.batch import iterate_batches, read_header
from barnabas.records.compression import GZIP, LZ4, compress
from barnabas.records.record import Record, iterate_records
from tests.kit.storage.batches import message


def test_plain_messages_are_their_own_batches() -> None:
    log = message(3, b"old", magic=0) + message(4, b"", timestamp=99)
    assert [position for position, _ in iterate_batches(log)] == [0, 12 + 14 + 3]
    assert list(iterate_records(log)) == [
        Record(3, -1, None, b"old"),
        Record(4, 99, None, b""),
    ]


def test_offsets_in_a_wrapper_of_magic_1_count_up_to_the_wrappers() -> None:
    """KIP-31: relative, so that the leader need not compress again."""
    inner = message(0, b"a") + message(1, b"b", timestamp=8) + message(3, b"d")
    wrapper = message(103, compress(GZIP, inner), attributes=GZIP, timestamp=8)
    assert read_header(wrapper).last_offset == 103
    found = [(r.offset, r.timestamp, r.value) for r in iterate_records(wrapper)]
    assert found == [(100, 7, b"a"), (101, 8, b"b"), (103, 7, b"d")]


def test_offsets_in_a_wrapper_of_magic_0_are_absolute() -> None:
    inner = message(100, b"a", magic=0) + message(103, b"d", magic=0)
    wrapper = message(103, compress(GZIP, inner), magic=0, attributes=GZIP)
    assert [r.offset for r in iterate_records(wrapper)] == [100, 103]


def test_under_log_append_time_the_wrappers_time_counts() -> None:
    wrapper = message(1, compress(GZIP, message(0, b"a")), attributes=GZIP | 8, timestamp=555)
    (record,) = iterate_records(wrapper)
    assert (record.timestamp, record.timestamp_type) == (555, 1)


def test_the_wrong_lz4_checksum_of_magic_0_is_forgiven_there_alone() -> None:
    frame = bytearray(compress(LZ4, message(5, b"a", magic=0)))
    frame[6] ^= 0xFF
    wrapper = message(5, bytes(frame), magic=0, attributes=LZ4)
    assert [r.value for r in iterate_records(wrapper)] == [b"a"]
    with pytest.raises(CorruptData):
        list(iterate_records(message(5, bytes(frame), magic=1, attributes=LZ4)))


@pytest.mark.parametrize(
    "hostile",
    [
        message(0, b"", attributes=GZIP),
        message(0, compress(GZIP, b""), attributes=GZIP),
        message(0, compress(GZIP, message(0, b"x", attributes=GZIP)), attributes=GZIP),
        message(0, compress(GZIP, message(0, b"x", magic=0)), attributes=GZIP),
        message(0, b"\x04\x22", magic=0, attributes=LZ4),
    ],
    ids=["no frame", "nothing inside", "wrapped twice", "two magics", "cut frame"],
)
def test_impossible_wrappers_are_corrupt_data(hostile: bytes) -> None:
    with pytest.raises(CorruptData):
        list(iterate_records(hostile))


def test_fields_must_fill_the_message() -> None:
    body = pack(">bbqii", 1, 0, 7, -1, 5) + b"abc"
    with pytest.raises(CorruptData, match="5 bytes, but 3 are left"):
        list(iterate_records(pack(">qiI", 0, len(body) + 4, zlib.crc32(body)) + body))
