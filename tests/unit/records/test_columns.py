"""Record batches to Arrow columns: the cases that the property test would meet too rarely."""

from __future__ import annotations

import struct
import zlib

import pytest

from barnabas.errors import CorruptData
from barnabas.records.batch import CONTROL, LOG_APPEND_TIME, read_header, seal, stamp_in_place
from barnabas.records.columns import Columns, iterate_columns, microseconds
from barnabas.records.control_records import ABORT, Marker, build_marker
from barnabas.records.record import BatchBuilder, iterate_records

NOW_MS = 1_700_000_000_000


def batch(values: list[bytes | None], base_offset: int = 0, codec: int = 0) -> bytes:
    builder = BatchBuilder(codec=codec)
    for value in values:
        builder.append(NOW_MS, None, value)
    return builder.build(base_offset)


def values_of(data: bytes) -> list[bytes | None]:
    return [value for columns in iterate_columns(data) for value in columns.values.to_pylist()]


def only(data: bytes, *, with_headers: bool = False) -> Columns:
    (columns,) = iterate_columns(data, with_headers=with_headers)
    return columns


@pytest.mark.parametrize("change_at", [31, 32, 63, 64, 191, 192, 193, 575, 576, 577, 700])
def test_a_run_of_equal_sizes_ends_where_it_ends(change_at: int) -> None:
    """Windows of the run search end at 64 + 128 + 512...; the size changes on and about them."""
    values: list[bytes | None] = [b"a" * 100] * change_at + [b"b" * 90] * (800 - change_at)
    assert values_of(batch(values)) == values


def test_a_run_goes_on_from_batch_to_batch_of_any_codec() -> None:
    values: list[bytes | None] = [b"%03d" % n for n in range(50)]
    data = b"".join(batch(values, base_offset=50 * n, codec=n) for n in range(5))
    assert values_of(data) == values * 5
    assert only(data).offsets.to_pylist() == list(range(250))


def test_keys_values_and_times() -> None:
    builder = BatchBuilder()
    builder.append(NOW_MS, b"k", b"v" * 13)
    builder.append(NOW_MS + 5, None, b"")
    builder.append(-1, b"", None)
    columns = only(builder.build(7))
    assert columns.keys.to_pylist() == [b"k", None, b""]
    assert columns.values.to_pylist() == [b"v" * 13, b"", None]
    assert columns.offsets.to_pylist() == [7, 8, 9]
    assert columns.timestamps.cast("int64").to_pylist() == [
        NOW_MS,
        NOW_MS + 5,
        -1,
    ]
    assert columns.timestamps.type.tz == "UTC"
    assert columns.timestamp_types.to_pylist() == [0, 0, 0]
    assert columns.headers is None


def test_times_beyond_microseconds_keep_their_sign() -> None:
    """A producer may write any int64 as milliseconds."""
    builder = BatchBuilder()
    for time_ms in (NOW_MS, 2**62, -(2**62)):
        builder.append(time_ms, None, b"v")
    found = microseconds(only(builder.build(0)).timestamps)
    assert str(found.type) == "timestamp[us, tz=UTC]"
    last_us = (2**63 - 1) // 1000 * 1000
    assert found.cast("int64").to_pylist() == [NOW_MS * 1000, last_us, -last_us]


def test_log_append_time_is_everyones() -> None:
    data = bytearray(batch([b"a", b"b"]))
    stamp_in_place(data, 0, read_header(data), NOW_MS + 99)
    assert read_header(data).attributes & LOG_APPEND_TIME
    columns = only(bytes(data))
    assert columns.timestamps.cast("int64").to_pylist() == [NOW_MS + 99] * 2
    assert columns.timestamp_types.to_pylist() == [1, 1]


def test_headers_keep_their_order_and_none_are_null() -> None:
    builder = BatchBuilder()
    builder.append(NOW_MS, None, b"v", [("a", b"1"), ("b", None), ("a", b"2")])
    builder.append(NOW_MS, None, b"v")
    builder.append(NOW_MS, None, b"v", [("é", b"")])
    headers = only(builder.build(), with_headers=True).headers
    assert headers is not None
    assert headers.to_pylist() == [
        [{"key": "a", "value": b"1"}, {"key": "b", "value": None}, {"key": "a", "value": b"2"}],
        None,
        [{"key": "é", "value": b""}],
    ]


def test_a_header_key_that_is_no_utf8_does_not_stop_the_topic() -> None:
    builder = BatchBuilder()
    builder.append(NOW_MS, None, b"v", [("XX", b"1")])
    data = builder.build().replace(b"XX", b"\xff\xfe")
    (columns,) = iterate_columns(data, with_headers=True, check_crc=False)
    assert columns.headers is not None
    assert columns.headers.to_pylist() == [[{"key": "\ufffd\ufffd", "value": b"1"}]]


def test_control_batches_are_skipped() -> None:
    header = read_header(batch([b"marker"], 1))
    marker = seal(header._replace(attributes=CONTROL), batch([b"marker"])[61:])
    assert values_of(batch([b"a"]) + marker + batch([b"b"], 2)) == [b"a", b"b"]
    assert list(iterate_columns(marker)) == []


def test_records_of_aborted_transactions_are_left_out() -> None:
    def of(producer_id: int, value: bytes, offset: int) -> bytes:
        builder = BatchBuilder(producer_id=producer_id, is_transactional=True)
        builder.append(NOW_MS, None, value)
        return builder.build(offset)

    data = b"".join(
        [
            of(7, b"aborted", 0),
            of(8, b"committed", 1),
            build_marker(Marker(2, NOW_MS, ABORT, 0), 7, 0),
            of(7, b"later", 3),
        ]
    )
    kept = [c.values.to_pylist() for c in iterate_columns(data, aborted=[(7, 0)])]
    assert kept == [[b"committed", b"later"]]


def test_a_wrong_checksum_is_corrupt_unless_unchecked() -> None:
    data = bytearray(batch([b"abc"]))
    data[-2] ^= 1
    with pytest.raises(CorruptData, match="fails its checksum"):
        list(iterate_columns(data))
    assert len(list(iterate_columns(data, check_crc=False))) == 1


def test_a_batch_that_claims_too_many_records_is_corrupt() -> None:
    plain = batch([b"abc"])
    claims = seal(read_header(plain)._replace(record_count=2**31 - 1), plain[61:])
    with pytest.raises(CorruptData, match="has 2,147,483,647 records"):
        list(iterate_columns(claims))
    two = seal(read_header(plain)._replace(record_count=1), plain[61:] * 2)
    with pytest.raises(CorruptData, match="not filled"):
        list(iterate_columns(two))


def test_large_fetches_come_in_groups() -> None:
    data = b"".join(batch([b"x"] * 1000, 1000 * n) for n in range(140))
    groups = list(iterate_columns(data, range(10, 139_990)))
    assert [len(group.offsets) for group in groups] == [65_990, 66_000, 7_990]


def test_messages_of_old_formats() -> None:
    """Magic 1 as an old directory holds it; offsets and range as for any batch."""
    data = b"".join(old_message(offset, b"value-%d" % offset) for offset in range(5))
    columns = list(iterate_columns(data + batch([b"new"], 5), range(2, 99), with_headers=True))
    assert [value for each in columns for value in each.values.to_pylist()] == [
        b"value-2", b"value-3", b"value-4", b"new",
    ]  # fmt: skip
    assert columns[0].timestamps.cast("int64").to_pylist() == [NOW_MS]
    assert [record.value for record in iterate_records(data)][4] == b"value-4"


def test_a_message_without_a_timestamp_has_a_type_of_its_own() -> None:
    """Magic 0: the connector's table says -1 (NoTimestampType), not CreateTime."""
    data = old_message(0, b"oldest", magic=0) + old_message(1, b"old")
    columns = list(iterate_columns(data))
    assert [each.timestamp_types.to_pylist() for each in columns] == [[-1], [0]]
    assert columns[0].timestamps.cast("int64").to_pylist() == [-1]


def old_message(offset: int, value: bytes, magic: int = 1) -> bytes:
    time = struct.pack(">q", NOW_MS) if magic else b""
    checked = struct.pack(">bb", magic, 0) + time + struct.pack(">ii", -1, len(value)) + value
    return struct.pack(">qiI", offset, len(checked) + 4, zlib.crc32(checked)) + checked
