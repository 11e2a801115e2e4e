"""Answers about groups while a follower is paused: each waits for what it tells of, and no more.

A group's heartbeats and joins come from memory, as Kafka's; assignments and offsets are given out
when the high watermark has passed their records.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from barnabas.broker.outcome import Outcome
from barnabas.broker.partitions.replica import Replica
from barnabas.cluster.layout import GROUP_TOPIC
from barnabas.coordinator.groups import Caller, Groups
from barnabas.coordinator.settings import GroupConfig
from barnabas.errors import UnstableOffsetCommit
from barnabas.protocol.message import Message
from barnabas.protocol.messages.describe_groups import DescribedGroup
from barnabas.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from barnabas.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from barnabas.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from barnabas.protocol.messages.offset_commit import (
    OffsetCommitPartition,
    OffsetCommitRequest,
    OffsetCommitTopic,
)
from barnabas.protocol.messages.offset_fetch import OffsetFetchGroup
from barnabas.protocol.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from barnabas.replication.follower_state import FollowerFetch
from tests.kit.broker.tallies import NAME, Node, failed, run
from tests.kit.waiting import until

FOLLOWER = 5
_CONFIG = GroupConfig(initial_rebalance_delay_ms=0)


class GroupNode(Node):
    """A broker that coordinates groups, with another replica in the ISR."""

    def make(self, partition: int, epoch: int) -> Any:
        return Groups(partition, epoch, _CONFIG)

    @property
    def replica(self) -> Replica:
        return self.replicas.leader_of((GROUP_TOPIC, 0))

    def take(self, epoch: int) -> None:
        self.lead(0, epoch, paused=(FOLLOWER,))

    def follow(self) -> None:
        """The follower has everything that was written."""
        self.replicas.write_staged()
        replica = self.replica
        end, epoch = replica.log.log_end_offset, replica.partition.leader_epoch
        replica.fetched(FollowerFetch(FOLLOWER, end, epoch), self.clock.monotonic_ms())

    def ask(self, decide: Any, fail: Any = failed) -> Outcome:
        return self.shards.shard_of(NAME).ask(decide, fail)

    def join(self, member_id: str = "") -> Outcome:
        request = JoinGroupRequest(
            group_id=NAME,
            member_id=member_id,
            session_timeout_ms=60_000,
            rebalance_timeout_ms=60_000,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
        )
        caller = Caller("c", "/h", "1", 3)
        return self.ask(lambda machine, ticket, now: machine.join(ticket, request, caller, now))

    def sync(self, member_id: str) -> Outcome:
        assigned = [SyncGroupRequestAssignment(member_id=member_id, assignment=b"all")]
        request = SyncGroupRequest(
            group_id=NAME, generation_id=1, member_id=member_id, assignments=assigned
        )
        return self.ask(
            lambda machine, ticket, now: machine.sync(ticket, request, now),
            lambda error: SyncGroupResponse(error_code=error.code),
        )

    def heartbeat(self, member_id: str) -> Outcome:
        request = HeartbeatRequest(group_id=NAME, generation_id=1, member_id=member_id)
        return self.ask(
            lambda machine, ticket, now: machine.heartbeat(ticket, request, now.monotonic_ms)
        )

    def commit(self, offset: int) -> Outcome:
        place = OffsetCommitPartition(partition_index=0, committed_offset=offset)
        topics = [OffsetCommitTopic(name="t", partitions=[place])]
        request = OffsetCommitRequest(
            group_id=NAME, generation_id_or_member_epoch=-1, topics=topics
        )
        return self.ask(lambda machine, ticket, now: machine.commit(ticket, request, now))

    def fetch(self, *, require_stable: bool = False) -> Outcome:
        wanted = OffsetFetchGroup(group_id=NAME, topics=None)
        mark = self.replica.high_watermark
        return self.ask(
            lambda machine, ticket, _: machine.fetch(ticket, wanted, require_stable, mark)
        )

    def fetched(self, *, require_stable: bool = False) -> list[tuple[int, int]]:
        """The offset and error of each partition, of an answer that is given at once."""
        answer: Any = self.fetch(require_stable=require_stable)
        assert isinstance(answer, Message), "it waits"
        return [
            (one.committed_offset, one.error_code)
            for topic in answer.topics
            for one in topic.partitions
        ]

    async def joined(self) -> str:
        """The id of the only member of generation 1."""
        answer: Any = await asyncio.wait_for(self.join().until_answered(), 60)  # type: ignore[union-attr]
        assert isinstance(answer, JoinGroupResponse), answer
        assert (answer.error_code, answer.generation_id) == (0, 1)
        return answer.member_id


@asynccontextmanager
async def grouped(directory: Path) -> AsyncIterator[GroupNode]:
    node = GroupNode(directory)
    try:
        yield node
    finally:
        node.shards.close()
        node.store.close()


def test_members_of_a_group_live_while_a_follower_is_paused_gc_2(tmp_path: Path) -> None:
    """The answers to Heartbeat, JoinGroup, LeaveGroup and DescribeGroups come from memory."""

    async def test(directory: Path) -> None:
        async with grouped(directory) as node:
            node.take(1)
            member_id = await node.joined()
            synced: Any = node.sync(member_id)
            waiting = asyncio.create_task(synced.until_answered())
            node.replicas.write_staged()
            assert node.replica.high_watermark < node.replica.log.log_end_offset
            assert node.heartbeat(member_id) == HeartbeatResponse()
            again = node.join(member_id)  # the leader rejoins: the next generation
            assert isinstance(again, JoinGroupResponse)
            assert again.generation_id == 2
            described = node.ask(
                lambda machine, ticket, _: machine.describe(ticket, NAME, with_events=False)
            )
            assert isinstance(described, DescribedGroup)
            assert described.group_state == "CompletingRebalance"
            assert not waiting.done(), "an assignment is given out when it is replicated"
            leaving = LeaveGroupRequest(group_id=NAME, member_id=member_id)
            left = node.ask(lambda machine, ticket, now: machine.leave(ticket, leaving, 0, now))
            assert left == LeaveGroupResponse()
            node.follow()
            assert (await waiting).assignment == b"all"

    run(test, tmp_path)


def test_an_assignment_is_given_again_when_its_record_is_replicated_gc_2(tmp_path: Path) -> None:
    async def test(directory: Path) -> None:
        async with grouped(directory) as node:
            node.take(1)
            member_id = await node.joined()
            node.sync(member_id)  # its answer is lost
            node.replicas.write_staged()
            assert not isinstance(node.sync(member_id), Message)
            node.follow()
            node.commit(1)  # which the answer does not tell of
            again = node.sync(member_id)
            assert isinstance(again, SyncGroupResponse)
            assert again.assignment == b"all"

    run(test, tmp_path)


def test_offsets_count_for_readers_when_they_are_replicated_gc_3(tmp_path: Path) -> None:
    """And no reader waits: a commit under way leaves the offset before it, as in Kafka."""

    async def test(directory: Path) -> None:
        unstable = (-1, UnstableOffsetCommit.code)
        async with grouped(directory) as node:
            node.take(1)
            first: Any = node.commit(1)
            assert node.fetched() == []
            node.follow()
            assert first.at_once() is not None
            assert node.fetched(require_stable=True) == [(1, 0)]
            node.commit(2)
            node.replicas.write_staged()
            assert node.fetched() == [(1, 0)]
            assert node.fetched(require_stable=True) == [unstable]
            node.commit(3)
            node.replicas.write_staged()
            assert node.fetched() == [(1, 0)]
            node.follow()
            assert node.fetched(require_stable=True) == [(3, 0)]

    run(test, tmp_path)


def test_a_loaded_offset_above_the_watermark_is_waited_for_gc_3(tmp_path: Path) -> None:
    """The former coordinator may have acknowledged it: the one before it would be a step back."""

    async def test(directory: Path) -> None:
        async with grouped(directory) as node:
            node.take(1)
            node.commit(1)
            node.follow()
            node.commit(2)
            node.replicas.write_staged()
            node.take(2)
            await until(lambda: not node.shards.is_loading)
            reading: Any = node.fetch()
            assert not isinstance(reading, Message)
            waiting = asyncio.create_task(reading.until_answered())
            await asyncio.sleep(0)
            node.follow()
            (topic,) = (await waiting).topics
            assert topic.partitions[0].committed_offset == 2

    run(test, tmp_path)
