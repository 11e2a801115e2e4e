"""UX-6: Kafka's JSON of internal records; what 3.9.1 prints is compared in the slow suite."""

from __future__ import annotations

import pytest

from barnabas.cli.kafka.json_formatters import JsonFormatter
from barnabas.cli.kafka.options import BadCommandLine
from barnabas.client.consumer.fetched import ConsumerRecord
from tests.kit.coordinator_records import (
    GROUP_KEY,
    GROUP_VALUE,
    OFFSET_KEY,
    OFFSET_VALUE,
    TRANSACTION_KEY,
)

OFFSETS, GROUPS, TRANSACTIONS = map(
    JsonFormatter,
    ("OffsetsMessageFormatter", "GroupMetadataMessageFormatter", "TransactionLogMessageFormatter"),
)


def record(key: bytes | None, value: bytes | None) -> ConsumerRecord:
    return ConsumerRecord("t", 0, 5, 0, 0, key, value, ())


def test_an_offset_and_a_group() -> None:
    assert OFFSETS(record(OFFSET_KEY, OFFSET_VALUE)) == (
        b'{"key":{"version":1,"data":{"group":"g1","topic":"t","partition":0}},"value":{"version":3,'
        b'"data":{"offset":42,"leaderEpoch":5,"metadata":"","commitTimestamp":1700000000000}}}'
    )
    assert OFFSETS(record(GROUP_KEY, GROUP_VALUE)) == b""
    assert GROUPS(record(OFFSET_KEY, OFFSET_VALUE)) == b""
    shown = GROUPS(record(GROUP_KEY, GROUP_VALUE))
    assert shown.startswith(
        b'{"key":{"version":2,"data":{"group":"g1"}},"value":{"version":3,"data":{"protocolType":'
        b'"consumer","generation":1,"protocol":"range","leader":"m1","currentStateTimestamp":'
        b'1700000000000,"members":[{"memberId":"m1","groupInstanceId":null,"clientId":"c1",'
    )


def test_tombstones_and_versions_of_a_newer_kafka() -> None:
    assert TRANSACTIONS(record(TRANSACTION_KEY, None)) == (
        b'{"key":{"version":0,"data":{"transactionalId":"tx1"}},"value":null}'
    )
    assert TRANSACTIONS(record(b"\0\7", b"\0\7")) == (
        b'{"key":{"version":7,"data":"unknown"},"value":{"version":7,"data":"unknown"}}'
    )


def test_control_characters_have_capital_letters() -> None:
    key = b"\0\0\0\3a\x1f\\"
    assert TRANSACTIONS(record(key, None)) == (
        rb'{"key":{"version":0,"data":{"transactionalId":"a\u001F\\"}},"value":null}'
    )
    key = b"\0\0\0\6\\u001f"
    assert rb'"\\u001f"' in TRANSACTIONS(record(key, None)), "text that only looks like one"


@pytest.mark.parametrize("key", [b"", b"\0", OFFSET_KEY[:-1]])
def test_bytes_that_are_no_such_record(key: bytes) -> None:
    with pytest.raises(BadCommandLine, match="at offset 5 of t-0 cannot be read"):
        OFFSETS(record(key, None))
