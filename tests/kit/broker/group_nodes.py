"""A broker that coordinates one group, whose partition has another replica in its ISR."""

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
from barnabas.protocol.messages.heartbeat import HeartbeatRequest
from barnabas.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from barnabas.protocol.messages.offset_commit import (
    OffsetCommitPartition,
    OffsetCommitRequest,
    OffsetCommitTopic,
)
from barnabas.protocol.messages.offset_fetch import OffsetFetchGroup, OffsetFetchGroupResponse
from barnabas.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from barnabas.replication.follower_state import FollowerFetch
from tests.kit.broker.tallies import NAME, Node, failed

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
        replica.on_fetch(FollowerFetch(FOLLOWER, end, epoch), self.clock.monotonic_ms())

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

    def sync(self, member_id: str, assignment: bytes = b"all") -> Outcome:
        assigned = [SyncGroupRequestAssignment(member_id=member_id, assignment=assignment)]
        request = SyncGroupRequest(
            group_id=NAME, generation_id=1, member_id=member_id, assignments=assigned
        )
        return self.ask(lambda machine, ticket, now: machine.sync(ticket, request, now))

    def heartbeat(self, member_id: str) -> Outcome:
        request = HeartbeatRequest(group_id=NAME, generation_id=1, member_id=member_id)
        return self.ask(
            lambda machine, ticket, now: machine.heartbeat(ticket, request, now.monotonic_ms)
        )

    def commit(self, offset: int, partitions: int = 1, metadata: str = "") -> Outcome:
        places = [
            OffsetCommitPartition(
                partition_index=number, committed_offset=offset, committed_metadata=metadata
            )
            for number in range(partitions)
        ]
        topics = [OffsetCommitTopic(name="t", partitions=places)]
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
        answer = self.fetch(require_stable=require_stable)
        assert isinstance(answer, OffsetFetchGroupResponse), "it waits"
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
