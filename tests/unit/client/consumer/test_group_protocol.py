"""What members send each other: bytes that Kafka's own members write and read (AS-1)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.client.consumer.group_protocol import (
    GroupMember,
    Held,
    decode_assignment,
    decode_member,
    encode_assignment,
    encode_subscription,
)
from barnabas.errors import CorruptData
from barnabas.protocol.consumer_protocol import (
    ConsumerProtocolSubscription,
    encode_consumer_protocol,
)
from barnabas.protocol.messages.join_group import JoinGroupResponseMember
from barnabas.types import TopicPartition

HAD = (TopicPartition("t0", 0), TopicPartition("t0", 2), TopicPartition("t1", 1))


def member(metadata: bytes) -> JoinGroupResponseMember:
    return JoinGroupResponseMember(member_id="m", group_instance_id="i", metadata=metadata)


def test_a_sticky_member_says_what_it_had_and_when() -> None:
    """AS-4: in user data, for the eager protocol owns nothing while it joins."""
    subscribed = encode_subscription("sticky", ["t1", "t0"], Held(HAD, 7))
    assert decode_member("sticky", member(subscribed)) == GroupMember(
        "m", ("t0", "t1"), HAD, 7, "i"
    )
    assert decode_member("range", member(subscribed)).owned == ()


def test_the_others_say_that_they_own_nothing() -> None:
    """AS-6: what an eager member gave up may go to anybody at once."""
    for assignor in ("range", "roundrobin", "cooperative-sticky"):
        subscribed = encode_subscription(assignor, ["t0"], Held(HAD, 7))
        assert decode_member(assignor, member(subscribed)) == GroupMember("m", ("t0",), (), 7, "i")


def test_as_6_a_cooperative_member_says_what_it_keeps() -> None:
    """KIP-429: its partitions, and the generation that gave them to it; Kafka's leaders read both
    from the subscription."""
    subscribed = encode_subscription("cooperative-sticky", ["t0"], Held(HAD, 7, HAD[:2]))
    assert decode_member("cooperative-sticky", member(subscribed)) == GroupMember(
        "m", ("t0",), HAD[:2], 7, "i"
    )


def test_sticky_bytes_are_kafkas() -> None:
    """AS-4: version 3, the topics, StickyAssignorUserData, nothing owned, generation, no rack."""
    expected = (
        "0003"  # version
        "00000001" "00027430"  # topics: t0
        "00000018"  # user data: 24 bytes
        "00000001" "00027430" "00000002" "00000000" "00000002"  # t0: 0, 2
        "00000007"  # of generation 7
        "00000000"  # owned partitions
        "00000007"  # generation
        "ffff"  # rack
    )  # fmt: skip
    assert encode_subscription("sticky", ["t0"], Held(HAD[:2], 7)).hex() == expected


def test_user_data_that_cannot_be_read_costs_only_itself() -> None:
    """AS-4: the oldest sticky members say no generation; another assignor's data say nothing."""
    had = bytes.fromhex("00000001000274300000000100000002")
    for user_data, owned in (
        (had, (TopicPartition("t0", 2),)),
        (b"\x7f\xff\xff\xffsomething else", ()),
        (b"", ()),
        (None, ()),
    ):
        subscription = ConsumerProtocolSubscription(
            topics=["t0"], user_data=user_data, generation_id=5
        )
        found = decode_member("sticky", member(encode_consumer_protocol(subscription)))
        assert found == GroupMember("m", ("t0",), owned, -1, "i")


@given(
    st.lists(st.builds(TopicPartition, st.text(max_size=5), st.integers(0, 2**31 - 1)), unique=True)
)
def test_an_assignment_survives_the_way(partitions: list[TopicPartition]) -> None:
    """AS-1: per topic in the order in which it was given."""
    assert sorted(decode_assignment(encode_assignment(partitions))) == sorted(partitions)


def test_an_empty_assignment_is_none() -> None:
    """AS-1: what a member gets that the leader did not think of."""
    assert decode_assignment(b"") == []
    with pytest.raises(CorruptData):
        decode_assignment(b"\0")
    with pytest.raises(CorruptData):
        decode_member("range", member(b"\0\0\xff"))
