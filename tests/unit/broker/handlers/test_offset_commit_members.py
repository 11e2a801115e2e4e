"""GC-2: offsets of a group with members are its members', in their generation (GC-3)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from barnabas import Broker
from barnabas.errors import (
    GroupSubscribedToTopic,
    IllegalGeneration,
    MemberIdRequired,
    RebalanceInProgress,
    UnknownMemberId,
)
from barnabas.protocol.api import JOIN_GROUP, LEAVE_GROUP, SYNC_GROUP
from barnabas.protocol.consumer_protocol import (
    ConsumerProtocolSubscription,
    encode_consumer_protocol,
)
from barnabas.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from barnabas.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from barnabas.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tests.kit.broker.group_calls import AT_ONCE, find_coordinator
from tests.kit.broker.offsets import commit, committed, delete
from tests.kit.broker.topics import create
from tests.kit.broker.transactional_offsets import Producer, eventually
from tests.kit.raw_client import RawClient


@pytest.fixture(scope="module")
def node() -> Iterator[Broker]:
    """A broker whose new groups do not wait for more members."""
    with Broker(config=AT_ONCE) as broker:
        yield broker


class Member:
    """The only member of a group that is called after its topic."""

    def __init__(self, client: RawClient, topic: str, protocol_type: str = "consumer") -> None:
        self.client = client
        self.group_id = topic
        find_coordinator(client)
        self.protocol_type = protocol_type
        subscription = ConsumerProtocolSubscription(topics=[topic], user_data=None)
        self.metadata = encode_consumer_protocol(subscription)
        first = self._join("")
        assert first.error_code == MemberIdRequired.code
        joined = self._join(first.member_id)
        assert joined.error_code == 0
        self.member_id, self.generation = joined.member_id, joined.generation_id

    def _join(self, member_id: str):  # type: ignore[no-untyped-def]
        request = JoinGroupRequest(
            group_id=self.group_id,
            session_timeout_ms=60_000,
            rebalance_timeout_ms=60_000,
            member_id=member_id,
            protocol_type=self.protocol_type,
            protocols=[JoinGroupRequestProtocol(name="range", metadata=self.metadata)],
        )
        return self.client.call(JOIN_GROUP, 7, request)

    def sync(self) -> None:
        assigned = SyncGroupRequestAssignment(member_id=self.member_id, assignment=b"all")
        request = SyncGroupRequest(
            group_id=self.group_id,
            generation_id=self.generation,
            member_id=self.member_id,
            assignments=[assigned],
        )
        assert self.client.call(SYNC_GROUP, 3, request).error_code == 0

    def leave(self) -> None:
        leaving = [MemberIdentity(member_id=self.member_id)]
        request = LeaveGroupRequest(group_id=self.group_id, members=leaving)
        assert self.client.call(LEAVE_GROUP, 4, request).error_code == 0

    def commit(self, offset: int, **fields: object) -> int:
        """The error code of this member's commit; the fields say what is different in it."""
        mine = {"generation_id_or_member_epoch": self.generation, "member_id": self.member_id}
        place = (self.group_id, 0)
        return commit(self.client, self.group_id, {place: offset}, **(mine | fields))[place]


@pytest.fixture
def member(client: RawClient, topic: str) -> Member:
    return Member(client, topic)


def test_a_member_commits_in_its_generation(client: RawClient, member: Member) -> None:
    member.sync()
    assert member.commit(5) == 0
    assert member.commit(6, generation_id_or_member_epoch=7) == IllegalGeneration.code
    assert member.commit(6, generation_id_or_member_epoch=0) == IllegalGeneration.code
    assert member.commit(6, member_id="stranger") == UnknownMemberId.code
    assert committed(client, member.group_id, member.group_id, 0) == [5]


def test_no_other_client_commits_while_there_are_members(client: RawClient, member: Member) -> None:
    """A tool that resets offsets would be overwritten, or would overwrite."""
    member.sync()
    outsider: dict[str, object] = {"generation_id_or_member_epoch": -1, "member_id": ""}
    assert member.commit(6, **outsider) == UnknownMemberId.code
    member.leave()
    assert member.commit(6, **outsider) == 0
    assert member.commit(7) == UnknownMemberId.code
    assert committed(client, member.group_id, member.group_id, 0) == [6]


def test_between_join_and_sync_nothing_is_committed(member: Member) -> None:
    assert member.commit(5) == RebalanceInProgress.code
    member.sync()
    assert member.commit(5) == 0


def test_offsets_in_transactions_are_fenced_by_generation_too(
    client: RawClient, member: Member
) -> None:
    """KIP-447; a producer that names no member commits as ever."""
    member.sync()
    producer = Producer(client, f"tx-{member.group_id}")
    producer.begin(member.group_id)
    place = (member.group_id, 0)

    def answer(offset: int, **fields: object) -> int:
        return producer.commit(member.group_id, {place: offset}, **fields)[place]

    mine: dict[str, object] = {"generation_id": member.generation, "member_id": member.member_id}
    assert answer(1, **(mine | {"generation_id": 9})) == IllegalGeneration.code
    assert answer(1, **(mine | {"member_id": "stranger"})) == UnknownMemberId.code
    assert answer(2, **mine) == 0
    assert answer(3) == 0
    producer.end(is_commit=True)
    eventually(client, member.group_id, member.group_id, 3)


def test_offsets_of_topics_that_members_read_are_not_deleted(
    client: RawClient, member: Member
) -> None:
    """KIP-496."""
    member.sync()
    other = f"{member.group_id}-other"
    create(client, other)
    mine = {
        "generation_id_or_member_epoch": member.generation,
        "member_id": member.member_id,
    }
    commit(client, member.group_id, {(member.group_id, 0): 1, (other, 0): 2}, **mine)
    assert delete(client, member.group_id, (member.group_id, 0), (other, 0)) == (
        0,
        {(member.group_id, 0): GroupSubscribedToTopic.code, (other, 0): 0},
    )
    assert committed(client, member.group_id, other, 0) == [-1]
    assert committed(client, member.group_id, member.group_id, 0) == [1]
