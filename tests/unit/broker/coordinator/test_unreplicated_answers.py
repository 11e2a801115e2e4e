"""Answers about groups while a follower is paused: each waits for what it tells of, and no more.

A group's heartbeats and joins come from memory, as Kafka's; assignments and offsets are given out
when the high watermark has passed their records.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from barnabas.errors import UnstableOffsetCommit
from barnabas.protocol.message import Message
from barnabas.protocol.messages.describe_groups import DescribedGroup
from barnabas.protocol.messages.heartbeat import HeartbeatResponse
from barnabas.protocol.messages.join_group import (
    JoinGroupResponse,
)
from barnabas.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from barnabas.protocol.messages.sync_group import (
    SyncGroupResponse,
)
from tests.kit.broker.group_nodes import grouped
from tests.kit.broker.tallies import NAME, run
from tests.kit.waiting import until


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
