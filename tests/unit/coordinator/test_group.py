"""A group's own rules that no dialogue shows: old records, and which topics are in use."""

from __future__ import annotations

import pytest

from barnabas.coordinator.group import Group, GroupState
from barnabas.coordinator.member import Member
from barnabas.coordinator.records import GroupMetadataValue, MemberMetadata
from barnabas.protocol.consumer_protocol import (
    ConsumerProtocolSubscription,
    encode_consumer_protocol,
)


def subscription(*topics: str) -> bytes:
    return encode_consumer_protocol(ConsumerProtocolSubscription(topics=list(topics)))


def value(*members: MemberMetadata, protocol: str | None = "range") -> GroupMetadataValue:
    return GroupMetadataValue(
        protocol_type="consumer",
        generation=3,
        protocol=protocol,
        leader=members[0].member_id if members else None,
        current_state_timestamp=77,
        members=list(members),
    )


def stored(member_id: str, **fields: object) -> MemberMetadata:
    made = MemberMetadata(member_id=member_id, session_timeout=10, rebalance_timeout=20)
    for name, data in fields.items():
        setattr(made, name, data)
    return made


def test_a_record_says_all_that_survives() -> None:
    group = Group("g")
    record = value(stored("a", subscription=b"s", assignment=b"x"), stored("b"))
    group.apply(record)
    assert (group.state, group.generation, group.leader_id) == (GroupState.STABLE, 3, "a")
    assert group.members["a"].assignment == b"x" and group.is_stored
    assert group.record({"a": b"x"}).value == record


def test_a_later_record_wins_over_an_earlier_one() -> None:
    """Also in what the earlier one said of the same member."""
    group = Group("g")
    group.apply(value(stored("a", subscription=b"old"), stored("b")))
    later = value(stored("a", subscription=b"new", session_timeout=99), protocol="sticky")
    group.apply(later)
    again = Group("g")
    again.apply(later)
    assert group.record({}) == again.record({})
    assert group.choose_protocol() == "sticky" and list(group.members) == ["a"]
    group.apply(value(protocol=None))
    assert (group.state, group.members, group.leader_id) == (GroupState.EMPTY, {}, None)


def test_records_of_old_brokers_have_one_timeout() -> None:
    group = Group("g")
    group.apply(value(stored("a", rebalance_timeout=0)))
    assert group.members["a"].rebalance_timeout_ms == 10


def test_a_static_member_keeps_what_it_can_do_when_its_id_changes() -> None:
    group = Group("g")
    member = Member("g", "i-1", "i", (("range", b"s"), ("sticky", b"t")))
    group.add(member)
    group.apply(value(stored("i-2", group_instance_id="i", subscription=b"s")))
    assert group.members == {"i-2": member} and group.static_member("i") is member
    assert member.protocols == (("range", b"s"), ("sticky", b"t"))


@pytest.mark.parametrize(
    ("data", "topics"),
    [
        ([subscription("t"), subscription("t", "u")], {"t", "u"}),
        ([subscription()], set()),
        ([subscription("t"), b""], None),
        ([b"\0\0\0\0"], None),
    ],
)
def test_topics_in_use(data: list[bytes], topics: set[str] | None) -> None:
    """A malformed subscription: every topic may be in use."""
    group = Group("g")
    members = [stored(str(n), subscription=each) for n, each in enumerate(data)]
    group.apply(value(*members))
    assert group.subscribed_topics() == topics
    assert group.is_subscribed_to("t") == (topics is None or "t" in topics)


def test_the_topics_of_others_than_consumers_are_unknown() -> None:
    group = Group("g")
    record = value(stored("a", subscription=subscription("t")))
    record.protocol_type = "connect"
    group.apply(record)
    assert group.subscribed_topics() is None


def test_what_most_like_best_must_be_what_all_can_do() -> None:
    """GC-2"""
    group = Group("g")
    for name in ("a", "b"):
        group.add(Member("g", name, None, (("sticky", b""), ("range", b""))))
    assert group.choose_protocol() == "sticky"
    group.add(Member("g", "c", None, (("range", b""),)))
    assert group.choose_protocol() == "range"
    group.remove(group.members["c"])
    assert group.choose_protocol() == "sticky"


def test_names_of_protocols_do_not_add_up() -> None:
    group = Group("g")
    member = Member("g", "a", None, ())
    group.add(member)
    for n in range(1000):
        group.change_protocols(member, ((f"p{n}", b""),))
    assert len(group._support) == 1
