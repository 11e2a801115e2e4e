"""Members of consumer groups: they join, and the member that gets the partition commits its
position.

A member whose commit is not answered starts again with another id, like a consumer that is
restarted. Its earlier requests may arrive late, and are refused once there is another generation.
"""

from __future__ import annotations

from barnabas.cluster.layout import GROUP_TOPIC
from barnabas.errors import NONE, MemberIdRequired, RebalanceInProgress
from barnabas.protocol.message import Message
from barnabas.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from barnabas.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from barnabas.protocol.messages.offset_commit import (
    OffsetCommitPartition,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitTopic,
)
from barnabas.protocol.messages.offset_fetch import (
    OffsetFetchGroup,
    OffsetFetchGroupResponse,
    OffsetFetchTopic,
)
from barnabas.protocol.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from barnabas.types import TopicPartition
from simulation.cluster import Cluster
from simulation.wire import AskGroup, Coordinated
from simulation.workload import Client

_TOPIC = "read"  # the topic of the positions; no broker hosts it, so it is never deleted
_SESSION_MS = 2000
_REBALANCE_MS = 1500
_CALL_TIMEOUT_MS = 4000
_BACKOFF_MS = 150
_MINE = b"commits"


class GroupMember(Client):
    """Plays one member after another, with one id at a time."""

    __slots__ = ("_generation", "_group_id", "_is_mine", "_member_id", "has_stopped", "is_stopping")

    def __init__(self, cluster: Cluster, number: int, group_id: str) -> None:
        super().__init__(cluster, number)
        self._group_id = group_id
        self._member_id = ""
        self._generation = -1
        self._is_mine = False
        self.is_stopping = False
        self.has_stopped = False

    async def run(self) -> None:
        random = self.cluster.world.random
        while not self.is_stopping:
            if self._generation < 0:
                await self._join()
            elif random.random() < 0.05:
                self._start_over()  # it crashes, and its session must end
                await self.sleep(random.randrange(1000))
            elif self._is_mine and random.random() < 0.6:
                await self._commit()
            else:
                await self._heartbeat()
            await self.sleep(int(random.expovariate(1 / 200)))
        self.has_stopped = True

    async def _join(self) -> None:
        request = JoinGroupRequest(
            group_id=self._group_id,
            session_timeout_ms=_SESSION_MS,
            rebalance_timeout_ms=_REBALANCE_MS,
            member_id=self._member_id,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="one", metadata=b"")],
        )
        answer = await self._ask(request)
        if not isinstance(answer, JoinGroupResponse):
            return
        if answer.error_code == MemberIdRequired.code:
            self._member_id = answer.member_id
        elif answer.error_code:
            self._start_over()
        else:
            self._member_id = answer.member_id
            await self._sync(answer)

    async def _sync(self, joined: JoinGroupResponse) -> None:
        assignments = []
        if joined.leader == self._member_id:
            names = [member.member_id for member in joined.members]
            chosen = names[self.cluster.world.below(len(names))]
            assignments = [
                SyncGroupRequestAssignment(
                    member_id=name, assignment=_MINE if name == chosen else b""
                )
                for name in names
            ]
        request = SyncGroupRequest(
            group_id=self._group_id,
            generation_id=joined.generation_id,
            member_id=self._member_id,
            assignments=assignments,
        )
        answer = await self._ask(request)
        if not isinstance(answer, SyncGroupResponse) or answer.error_code:
            return
        self._generation = joined.generation_id
        self._is_mine = answer.assignment == _MINE
        if self._is_mine:
            await self._fetch()

    async def _fetch(self) -> None:
        topic = OffsetFetchTopic(name=_TOPIC, partition_indexes=[0])
        request = OffsetFetchGroup(group_id=self._group_id, topics=[topic])
        generation = self._generation
        answer = await self._ask(request)
        if isinstance(answer, OffsetFetchGroupResponse) and not answer.error_code:
            ((partition,),) = [each.partitions for each in answer.topics]
            if partition.error_code == NONE:
                self.cluster.checks.groups.fetched(
                    self._group_id, generation, partition.committed_offset
                )
                return
        self._start_over()  # without a position it commits nothing

    async def _commit(self) -> None:
        groups = self.cluster.checks.groups
        offset = groups.next_offset(self._group_id)
        if self.cluster.world.chance(0.05):
            # It pauses for longer than its session timeout: another generation goes on.
            await self.sleep(_SESSION_MS + _REBALANCE_MS + self.cluster.world.below(2000))
        partition = OffsetCommitPartition(
            partition_index=0, committed_offset=offset, committed_metadata=""
        )
        request = OffsetCommitRequest(
            group_id=self._group_id,
            generation_id_or_member_epoch=self._generation,
            member_id=self._member_id,
            topics=[OffsetCommitTopic(name=_TOPIC, partitions=[partition])],
        )
        answer = await self._ask(request, tries=1)
        if not isinstance(answer, OffsetCommitResponse):
            self._start_over()
            return
        ((result,),) = [each.partitions for each in answer.topics]
        if result.error_code == NONE:
            groups.acknowledged(self._group_id, self._generation, offset)
        elif result.error_code == RebalanceInProgress.code:
            self._generation = -1
        else:
            self._start_over()

    async def _heartbeat(self) -> None:
        request = HeartbeatRequest(
            group_id=self._group_id, generation_id=self._generation, member_id=self._member_id
        )
        answer = await self._ask(request)
        if not isinstance(answer, HeartbeatResponse):
            return
        if answer.error_code == RebalanceInProgress.code:
            self._generation = -1
        elif answer.error_code:
            self._start_over()

    def _start_over(self) -> None:
        self._member_id = ""
        self._generation = -1

    async def _ask(self, request: Message, tries: int = 3) -> Message | None:
        """Return the coordinator's answer, or None if there is none."""
        name = TopicPartition(GROUP_TOPIC, 0)
        is_stale = False
        for _ in range(tries):
            leader = await self.leader(name, is_stale=is_stale)
            if leader is not None:
                answer: Coordinated | None = await self.connection(leader.broker_id).call(
                    AskGroup(self._group_id, request), _CALL_TIMEOUT_MS
                )
                if answer is not None and answer.answer is not None:
                    return answer.answer
            is_stale = True
            await self.sleep(_BACKOFF_MS)
        return None
