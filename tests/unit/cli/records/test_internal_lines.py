"""GC-4: `__consumer_offsets` as Kafka's formatters show it. The lines are those of Kafka 3.9.1."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.cli.records.internal_lines import group_line, offset_line
from barnabas.cli.records.layout import template_layout
from barnabas.client.consumer.fetched import ConsumerRecord
from barnabas.coordinator.records import OffsetCommitKey, OffsetCommitValue, encode_record
from barnabas.errors import CorruptData
from tests.kit.coordinator_records import (
    GROUP_KEY,
    GROUP_VALUE,
    OFFSET_KEY,
    OFFSET_VALUE,
    TRANSACTION_KEY,
)

GC_4 = (
    "[g,t,0]::OffsetAndMetadata(offset=100, leaderEpoch=Optional[0], metadata=, "
    "commitTimestamp=1700000000000, expireTimestamp=None)"
)
# What `--formatter kafka.coordinator.group.GroupMetadataManager$GroupMetadataMessageFormatter`
# prints of the golden group.
GROUP = (
    "g1::GroupMetadata(groupId=g1, generation=1, protocolType=Some(consumer), "
    "currentState=Stable, members=HashMap(m1 -> MemberMetadata(memberId=m1, "
    "groupInstanceId=None, clientId=c1, clientHost=/127.0.0.1, sessionTimeoutMs=45000, "
    "rebalanceTimeoutMs=300000, supportedProtocols=List(range))))"
)
EMPTY_GROUP = bytes.fromhex("00030008") + b"consumer" + bytes.fromhex("00000002ffffffff")


def committed(**value: object) -> tuple[bytes, bytes | None]:
    given = {"offset": 100, "leader_epoch": 0, "commit_timestamp": 1_700_000_000_000} | value
    return encode_record(
        OffsetCommitKey(group="g", topic="t", partition=0), OffsetCommitValue(**given)
    )


def test_gc_4_a_committed_offset() -> None:
    assert offset_line(*committed()) == GC_4


@pytest.mark.parametrize(
    ("fields", "shown"),
    [
        ({"leader_epoch": -1}, "leaderEpoch=Optional.empty, metadata=, "),
        ({"metadata": "grüße, a=b"}, "metadata=grüße, a=b, commitTimestamp"),
        ({"expire_timestamp": 500}, "expireTimestamp=Some(500))"),
    ],
)
def test_gc_4_what_an_offset_may_have(fields: dict[str, object], shown: str) -> None:
    line = offset_line(*committed(**fields))
    assert line is not None and shown in line


def test_gc_4_a_tombstone() -> None:
    assert offset_line(committed()[0], None) == "[g,t,0]::NULL"
    assert group_line(GROUP_KEY, None) == "g1::NULL"


def test_a_group() -> None:
    assert group_line(GROUP_KEY, GROUP_VALUE) == GROUP
    empty = EMPTY_GROUP + (1_700_000_000_000).to_bytes(8, "big") + bytes(4)
    assert group_line(GROUP_KEY, empty) == (
        "g1::GroupMetadata(groupId=g1, generation=2, protocolType=Some(consumer), "
        "currentState=Empty, members=HashMap())"
    )


def test_each_passes_over_the_others_records() -> None:
    newer = b"\0\3\0\1g"
    assert offset_line(GROUP_KEY, GROUP_VALUE) is None
    assert group_line(OFFSET_KEY, OFFSET_VALUE) is None
    assert offset_line(newer, b"") is group_line(newer, b"") is None


@pytest.mark.parametrize("show", [offset_line, group_line])
@pytest.mark.parametrize(("key", "value"), [(None, b""), (b"", b""), (OFFSET_KEY, b"\0\3")])
def test_what_cannot_be_read(show, key: bytes | None, value: bytes) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(CorruptData):
        show(key, value)


@given(
    st.sampled_from([b"", OFFSET_KEY, GROUP_KEY, TRANSACTION_KEY]),
    st.sampled_from([b"", b"\0\3", GROUP_VALUE, OFFSET_VALUE]),
    st.binary(max_size=20),
)
def test_any_bytes_give_a_line_or_corrupt_data(key: bytes, value: bytes, more: bytes) -> None:
    """UX-4."""
    for show in (offset_line, group_line):
        for each in ((key + more, value), (key, value + more), (key, None)):
            with suppress(CorruptData):
                show(*each)


def test_gc_4_as_a_format_of_consume() -> None:
    """Other kinds of records print nothing; bad ones are reported in a line."""
    key, value = committed()
    record = ConsumerRecord("__consumer_offsets", 6, 41, 0, 0, key, value, ())
    offsets, groups = template_layout("offsets"), template_layout("groups")
    assert offsets(record) == GC_4.encode() + b"\n"
    assert groups(record) == b""
    assert groups(record._replace(key=GROUP_KEY, value=GROUP_VALUE)) == GROUP.encode() + b"\n"
    assert offsets(record._replace(key=None)).startswith(b"Error at offset 41, skipping. ")
