"""ST-9: the internal topics' records, decoded and shown. Bytes are those of Kafka 3.9."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.cli.dump.internal_records import show_group_record, show_transaction_record
from barnabas.coordinator.records import (
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
    TransactionStatus,
    TransactionValue,
    UnknownRecordType,
    decode_group_record,
    decode_transaction_record,
)
from barnabas.errors import CorruptData
from barnabas.protocol.codec import encode
from barnabas.records.record import Record
from tests.kit.coordinator_records import (
    GROUP_KEY,
    GROUP_VALUE,
    OFFSET_KEY,
    OFFSET_VALUE,
    TRANSACTION_KEY,
)

NEWER = bytes.fromhex("000000000000002a00000005010000018bcfe5680000")  # of version 4
ONGOING = bytes.fromhex(
    "00000000000000000fa000000000ea60010000000100017400000001000000000000018bcfe568010000018bcfe56800"
)
EMPTY = bytes.fromhex("00000000000000000fa000000000ea6000ffffffff0000018bcfe56801ffffffffffffffff")


def test_an_offset_commit() -> None:
    decoded = decode_group_record(OFFSET_KEY, OFFSET_VALUE)
    assert decoded.key == OffsetCommitKey(group="g1", topic="t", partition=0)
    assert decoded.value == OffsetCommitValue(
        offset=42, leader_epoch=5, metadata="", commit_timestamp=1700000000000
    )
    assert (decoded.type, decoded.version) == (1, 3)
    assert show_group_record(Record(0, 0, OFFSET_KEY, OFFSET_VALUE)) == (
        '{"type":"1","data":{"group":"g1","topic":"t","partition":0}}',
        '{"version":"3","data":{"offset":42,"leaderEpoch":5,"metadata":"",'
        '"commitTimestamp":1700000000000}}',
    )


def test_a_group_with_what_its_consumers_said() -> None:
    decoded = decode_group_record(GROUP_KEY, GROUP_VALUE)
    assert isinstance(decoded.value, GroupMetadataValue)
    assert decoded.value.protocol == "range"
    key, payload = show_group_record(Record(0, 0, GROUP_KEY, GROUP_VALUE))
    assert key == '{"type":"2","data":{"group":"g1"}}'
    assert payload is not None and '"clientHost":"/127.0.0.1"' in payload
    assert '"assignment":{"assignedPartitions":[{"topic":"t","partitions":[0]}]' in payload


@pytest.mark.parametrize("version", [0, 1, 2, 3, 4])
def test_every_version_of_an_offset_commit(version: int) -> None:
    value = OffsetCommitValue(offset=7, metadata="m", commit_timestamp=8)
    raw = version.to_bytes(2, "big") + b"".join(map(bytes, encode(value, version)))  # type: ignore[arg-type]
    decoded = decode_group_record(OFFSET_KEY, raw)
    assert (decoded.version, decoded.value) == (version, value)


@pytest.mark.parametrize(
    ("value", "status", "text"),
    [
        (ONGOING, TransactionStatus.Ongoing, "state=Ongoing,partitions=[t-0],"),
        (EMPTY, TransactionStatus.Empty, "state=Empty,partitions=[],"),
    ],
)
def test_a_transaction(value: bytes, status: TransactionStatus, text: str) -> None:
    decoded = decode_transaction_record(TRANSACTION_KEY, value)
    assert isinstance(decoded.value, TransactionValue)
    assert decoded.value.transaction_status == status
    assert decoded.value.producer_id == 4000
    assert show_transaction_record(Record(0, 0, TRANSACTION_KEY, value)) == (
        "transaction_metadata::transactionalId=tx1",
        f"producerId:4000,producerEpoch:0,{text}"
        "txnLastUpdateTimestamp=1700000000001,txnTimeoutMs=60000",
    )


def test_what_deletes_and_what_is_not_known() -> None:
    """Newer Kafkas write more kinds of records: they are skipped, not an error."""
    assert show_group_record(Record(0, 0, GROUP_KEY, None))[1] == "<DELETE>"
    assert show_transaction_record(Record(0, 0, TRANSACTION_KEY, None))[1] == "<DELETE>"
    with pytest.raises(UnknownRecordType):
        decode_group_record(b"\0\3\0\1g", b"")
    assert show_group_record(Record(5, 0, b"\0\3\0\1g", b"")) == (
        "Unknown record type 3 at offset 5, skipping.",
        None,
    )
    assert show_transaction_record(Record(5, 0, b"\0\1\0\1g", b"")) == ("unknown::version=1", None)


def test_what_cannot_be_read_is_said_and_skipped() -> None:
    """UX-4."""
    for key, value in (
        (None, b""),
        (b"\0", b""),
        (OFFSET_KEY, b"\0\3"),
        (OFFSET_KEY, b"\0\x05" + NEWER),
    ):
        with pytest.raises(CorruptData):
            decode_group_record(key, value)
        shown, payload = show_group_record(Record(5, 0, key, value))
        assert shown is not None and shown.startswith("Error at offset 5, skipping. ")
        assert payload is None


def test_text_is_escaped_as_jackson_escapes_it() -> None:
    value = OffsetCommitValue(offset=0, metadata='"\\\n\x1f\x7fgrüße', commit_timestamp=0)
    raw = b"\0\3" + b"".join(map(bytes, encode(value, 3)))  # type: ignore[arg-type]
    payload = show_group_record(Record(0, 0, OFFSET_KEY, raw))[1]
    assert payload is not None
    assert '"metadata":"\\"\\\\\\n\\u001F\x7fgrüße"' in payload


@given(
    st.one_of(st.none(), st.binary(max_size=60)),
    st.one_of(st.none(), st.binary(max_size=60)),
    st.sampled_from([b"", OFFSET_KEY, GROUP_KEY, TRANSACTION_KEY]),
    st.sampled_from([b"", b"\0\3", GROUP_VALUE, b"\0\0", ONGOING]),
)
def test_any_bytes_give_a_line(
    key: bytes | None, value: bytes | None, begin: bytes, value_begin: bytes
) -> None:
    """UX-4."""
    record = Record(
        0, 0, None if key is None else begin + key, None if value is None else value_begin + value
    )
    for show in (show_group_record, show_transaction_record):
        assert show(record)[0]
