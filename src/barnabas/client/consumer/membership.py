"""Manages a consumer's group membership: joining, staying alive and leaving (classic protocol).

    join:  JoinGroup (waits for the other members) -> leader: assign -> SyncGroup -> partitions
    then:  Heartbeat every heartbeat.interval.ms, independent of the user's calls

Invariant: a generation is valid until the coordinator ends it. The coordinator then rejects commits
and heartbeats of this generation, so it never accepts two readers of a partition. The module
`group` revokes partitions and calls the listener. With the eager protocol, a member owns nothing
while it joins. With the cooperative protocol, it keeps its partitions until an assignment removes
them (KIP-429). If the membership ends during a join, these partitions are lost, and the join raises
an error instead of rejoining as a new member.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence

from barnabas.client.cluster import Cluster
from barnabas.client.config import ConsumerConfig
from barnabas.client.consumer.assignors import ASSIGNORS, Assignor, chosen_assignors
from barnabas.client.consumer.committed import GroupMetadata
from barnabas.client.consumer.group_protocol import (
    Held,
    decode_assignment,
    decode_member,
    encode_assignment,
    encode_subscription,
)
from barnabas.client.coordinator import GROUP, CoordinatorFinder
from barnabas.client.errors import Unreachable
from barnabas.client.pool import backoff_ms
from barnabas.counted import counted
from barnabas.errors import (
    BarnabasError,
    FencedInstanceId,
    IllegalGeneration,
    InconsistentGroupProtocol,
    KafkaError,
    MemberIdRequired,
    RebalanceInProgress,
    UnknownMemberId,
)
from barnabas.protocol.api import HEARTBEAT, JOIN_GROUP, LEAVE_GROUP, SYNC_GROUP
from barnabas.protocol.consumer_protocol import CONSUMER_PROTOCOL
from barnabas.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from barnabas.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from barnabas.protocol.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
)
from barnabas.protocol.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from barnabas.shielded import shielded
from barnabas.types import TopicPartition

_log = logging.getLogger(__name__)

_MANY_LEAVE_FROM = 3  # the first LeaveGroup version with a list of members (KIP-345)
_JOIN_LAPSE_MS = 5_000  # how long a join may exceed the rebalance timeout
_LEAVE_S = 1.0  # how long to wait for a response to LeaveGroup
_NO_GENERATION = -1

CountPartitions = Callable[[Sequence[str]], Awaitable[dict[str, int]]]
"""Counts the partitions of topics, for the leader. Unknown topics are omitted."""


class Membership:
    """A consumer's membership in its group. Sends the requests that start, maintain and end it."""

    def __init__(
        self,
        cluster: Cluster,
        config: ConsumerConfig,
        coordinators: CoordinatorFinder,
        on_news: Callable[[], None],
    ) -> None:
        self._cluster = cluster
        self._config = config
        self._coordinators = coordinators
        self._on_news = on_news  # called when the next poll has to react
        self._clock = cluster.seams.clock
        self._assignors = chosen_assignors(config.partition_assignment_strategy)
        self._instance_id = config.group_instance_id or None
        self._member_id = ""
        self._generation = _NO_GENERATION
        self._held = Held()
        self._aside = CoordinatorFinder(cluster, GROUP, aside=True)
        self._joins_at = coordinators
        self._heart: asyncio.Task[None] | None = None
        self._polled_at_ms = 0
        self.is_polling = False
        self.counts: dict[str, int] | None = (
            None  # the partition counts used for the assignment, if this is the leader
        )
        self.rejoin_reason = ""  # "": no rejoin is needed
        # the error that ended the membership; the next poll raises it
        self.error: BarnabasError | None = None
        self.is_fenced = False  # permanent: another consumer has taken this group.instance.id

    # ---- state ----

    @property
    def is_cooperative(self) -> bool:
        """Whether the member keeps its partitions while it joins (KIP-429).

        As in Kafka, all of its assignors must be cooperative. Otherwise, the group might next
        choose an eager assignor, which ignores the current owners.
        """
        return all(assignor.is_cooperative for assignor in self._assignors)

    @property
    def metadata(self) -> GroupMetadata:
        """The group metadata for commits. It has no generation while the consumer is no member."""
        return GroupMetadata(
            self._config.group_id, self._generation, self._member_id, self._instance_id
        )

    @property
    def is_member(self) -> bool:
        return self._generation != _NO_GENERATION

    def poll_began(self) -> None:
        self.is_polling = True

    def poll_ended(self) -> None:
        self.is_polling = False
        self._polled_at_ms = self._clock.monotonic_ms()

    def ask_rejoin(self, reason: str) -> None:
        """Make the next poll rejoin the group."""
        if not self.rejoin_reason:
            _log.info("group %r: rejoining: %s", self._config.group_id, reason)
            self.rejoin_reason = reason
            self._on_news()

    def lose(self, error: KafkaError) -> None:
        """End the membership, because the group has ended it and reassigned the partitions."""
        if isinstance(error, FencedInstanceId):
            self._fence()
            return
        _log.warning("group %r: no longer a member: %s", self._config.group_id, error)
        self._generation = _NO_GENERATION
        # If only the generation is stale, rejoin with the member id, which the group still
        # recognises.
        if not isinstance(error, IllegalGeneration):
            self._member_id = ""
        self.rejoin_reason = ""
        self.ask_rejoin(str(error))

    def check_fenced(self) -> None:
        """Raise FencedInstanceId, now and on every later call, if this consumer has been fenced.

        If this consumer rejoined, it would take the instance id back from the other consumer, which
        would then do the same. The two consumers would alternate indefinitely and process the same
        records (KIP-345).
        """
        if self.is_fenced:
            raise FencedInstanceId(
                f"group {self._config.group_id!r}: another consumer has taken over the "
                f"group.instance.id {self._instance_id!r}: close this one, and give each process "
                "its own id"
            )

    def _fence(self) -> None:
        _log.warning(
            "group %r: another consumer has taken over group.instance.id %r; this one is fenced",
            self._config.group_id,
            self._instance_id,
        )
        self.is_fenced = True
        self._member_id = ""
        self._generation = _NO_GENERATION
        self._on_news()

    # ---- joining ----

    async def join(
        self,
        topics: Sequence[str],
        count_partitions: CountPartitions,
        owned: Sequence[TopicPartition] = (),
    ) -> list[TopicPartition]:
        """Take part in rebalances until one yields an assignment, and return the assignment.

        Retries transient errors. Raises other errors, such as GroupMaxSizeReached,
        InconsistentGroupProtocol or FencedInstanceId. If there are `owned` partitions, the errors
        in MEMBERSHIP_OVER are raised too, because this member no longer owns the partitions.
        """
        await self._stop_heart()
        self._held = self._held._replace(owned=owned)
        # Reads and commits continue, and must not queue behind the JoinGroup response.
        self._joins_at = self._aside if owned else self._coordinators
        failures = 0
        reason = ""
        while True:
            # Clear the reason before the join, because a reason that arises during the join
            # requires another join.
            reason, self.rejoin_reason = self.rejoin_reason or reason, ""
            try:
                assigned = await self._join_once(topics, reason, count_partitions)
            except MemberIdRequired:
                continue  # retry immediately, with the id that the coordinator assigned (KIP-394)
            except (Unreachable, KafkaError) as error:
                if isinstance(error, FencedInstanceId):
                    self._fence()
                    self.check_fenced()
                self._forget(error, keep_generation=bool(owned))
                # A new member owns no partitions, so the caller must give up `owned` before the
                # next join.
                if owned and isinstance(error, MEMBERSHIP_OVER):
                    raise
                if not (isinstance(error, _AGAIN) or error.retriable):
                    raise
                failures += 1
                _log.info("group %r: %s", self._config.group_id, error)
                config = self._cluster.config
                pause_ms = backoff_ms(
                    failures,
                    config.retry_backoff_ms,
                    config.retry_backoff_max_ms,
                    self._cluster.seams.random,
                )
                await asyncio.sleep(pause_ms / 1000)
                continue
            self._held = Held(tuple(assigned), self._generation)
            self._polled_at_ms = self._clock.monotonic_ms()
            self._heart = self._cluster.tasks.start("heartbeats", self._live())
            return assigned

    def _forget(self, error: BarnabasError, *, keep_generation: bool) -> None:
        """Drop those parts of the member's identity that the error invalidates."""
        if isinstance(error, UnknownMemberId):
            self._member_id = ""
        is_passing = isinstance(error, Unreachable | RebalanceInProgress) or (
            isinstance(error, KafkaError) and error.retriable
        )
        if not (keep_generation and is_passing):
            self._generation = _NO_GENERATION

    async def _join_once(
        self, topics: Sequence[str], reason: str, count_partitions: CountPartitions
    ) -> list[TopicPartition]:
        config = self._config
        request = JoinGroupRequest(
            group_id=config.group_id,
            session_timeout_ms=config.session_timeout_ms,
            rebalance_timeout_ms=config.max_poll_interval_ms,
            member_id=self._member_id,
            group_instance_id=self._instance_id,
            protocol_type=CONSUMER_PROTOCOL,
            protocols=[
                JoinGroupRequestProtocol(name=each.name, metadata=self._subscription(each, topics))
                for each in self._assignors
            ],
            reason=reason or None,
        )
        # The coordinator responds when all members have joined or the rebalance timeout has passed.
        # That timeout is max.poll.interval.ms, the longest time that a member may take to process
        # records between polls (KIP-62).
        wait_ms = max(
            self._cluster.config.request_timeout_ms, config.max_poll_interval_ms + _JOIN_LAPSE_MS
        )
        joined = await self._joins_at.call(
            config.group_id, JOIN_GROUP, request, JoinGroupResponse, wait_ms
        )
        if joined.error_code == MemberIdRequired.code:
            self._member_id = joined.member_id
        self._joins_at.check(config.group_id, joined.error_code)
        self._member_id = joined.member_id
        self._generation = joined.generation_id
        # The leader computes all assignments; each member receives its own in SyncGroup (GC-2).
        is_leader = joined.leader == joined.member_id
        assignments: dict[str, list[TopicPartition]] = {}
        self.counts = None
        if is_leader:
            assignments = await self._assign(joined, count_partitions)
        return await self._sync(joined, assignments)

    def _subscription(self, assignor: Assignor, topics: Sequence[str]) -> bytes:
        rack_id = self._config.client_rack or None
        return encode_subscription(assignor.name, topics, self._held, rack_id)

    async def _assign(
        self, joined: JoinGroupResponse, count_partitions: CountPartitions
    ) -> dict[str, list[TopicPartition]]:
        """As the group's leader, compute the assignment with the assignor that the group chose."""
        assignor = ASSIGNORS.get(joined.protocol_name or "")
        if assignor is None:
            raise InconsistentGroupProtocol(
                f"the group chose the unsupported assignor {joined.protocol_name!r}"
            )
        members = [decode_member(assignor.name, member) for member in joined.members]
        topics = sorted({topic for member in members for topic in member.topics})
        # A topic that does not exist counts as having 0 partitions, so its creation is a change
        # (AS-1).
        self.counts = dict.fromkeys(topics, 0) | await count_partitions(topics)
        if joined.skip_assignment:
            return {}  # the static leader has rejoined, so keep the assignment (KIP-814)
        return assignor.assign(self.counts, members)

    async def _sync(
        self, joined: JoinGroupResponse, assignments: dict[str, list[TopicPartition]]
    ) -> list[TopicPartition]:
        group_id = self._config.group_id
        request = SyncGroupRequest(
            group_id=group_id,
            generation_id=self._generation,
            member_id=self._member_id,
            group_instance_id=self._instance_id,
            protocol_type=CONSUMER_PROTOCOL,
            protocol_name=joined.protocol_name,
            assignments=[
                SyncGroupRequestAssignment(
                    member_id=member_id, assignment=encode_assignment(partitions)
                )
                for member_id, partitions in assignments.items()
            ],
        )
        synced = await self._joins_at.call(group_id, SYNC_GROUP, request, SyncGroupResponse)
        self._joins_at.check(group_id, synced.error_code)
        assigned = decode_assignment(synced.assignment)
        _log.info(
            "group %r: generation %d, assigned by %s, gives %s to %s",
            group_id,
            self._generation,
            joined.protocol_name,
            counted(len(assigned), "partition"),
            self._member_id,
        )
        return assigned

    # ---- staying alive ----

    async def _live(self) -> None:
        """Send heartbeats until the group ends the membership or the user stops polling.

        The check of `max.poll.interval.ms` is not delayed by a heartbeat without a response.
        """
        # Two tasks run: one sends heartbeats, and this one monitors the polls.
        beating = asyncio.create_task(self._beat())
        try:
            while not self._is_poll_overdue():
                # The interval begins when a poll ends. A running poll may end at any moment.
                since_ms = self._clock.monotonic_ms() if self.is_polling else self._polled_at_ms
                wait_ms = since_ms + self._config.max_poll_interval_ms - self._clock.monotonic_ms()
                try:
                    async with asyncio.timeout(wait_ms / 1000):
                        await shielded(beating)
                    return
                except TimeoutError:
                    continue  # a poll has since begun or ended, so check again
        finally:
            beating.cancel()
            await asyncio.gather(beating, return_exceptions=True)
        await self._leave_overdue()

    def _is_poll_overdue(self) -> bool:
        poll_by_ms = self._polled_at_ms + self._config.max_poll_interval_ms
        return not self.is_polling and self._clock.monotonic_ms() >= poll_by_ms

    async def _beat(self) -> None:
        """Send heartbeats until the group ends the membership."""
        config = self._config
        pause_ms = config.heartbeat_interval_ms
        while True:
            await asyncio.sleep(pause_ms / 1000)
            sent_at_ms = self._clock.monotonic_ms()
            try:
                await self._heartbeat()
            except RebalanceInProgress:
                # The member is still in the group; heartbeats keep it alive until the next poll
                # rejoins.
                self.ask_rejoin("the group is rebalancing")
            except (UnknownMemberId, IllegalGeneration, FencedInstanceId) as error:
                self.lose(error)
                return
            except (Unreachable, KafkaError) as error:
                if isinstance(error, KafkaError) and not error.retriable:
                    self.lose(error)
                    self.error = error
                    return
                # Retry before the next heartbeat is due, because the session timeout is already
                # running.
                _log.info("group %r: %s", config.group_id, error)
                pause_ms = self._cluster.config.retry_backoff_ms
                continue
            # Measure the interval from the time of sending, because a slow response must not
            # lengthen it.
            next_ms = sent_at_ms + config.heartbeat_interval_ms
            pause_ms = max(next_ms - self._clock.monotonic_ms(), 0)

    async def _heartbeat(self) -> None:
        group_id, generation, member_id, instance_id = self.metadata
        request = HeartbeatRequest(
            group_id=group_id,
            generation_id=generation,
            member_id=member_id,
            group_instance_id=instance_id,
        )
        # A response is useless if it takes longer than the session timeout.
        answer = await self._coordinators.call(
            group_id, HEARTBEAT, request, HeartbeatResponse, self._config.session_timeout_ms
        )
        self._coordinators.check(group_id, answer.error_code)

    async def _leave_overdue(self) -> None:
        """Leave the group, because the user waited too long before the next poll (KIP-62)."""
        limit_ms = self._config.max_poll_interval_ms
        reason = (
            f"no poll within {limit_ms} ms (max.poll.interval.ms): process faster, raise it, or "
            "lower max.poll.records"
        )
        _log.warning("group %r: leaving: %s", self._config.group_id, reason)
        await self._send_leave(reason)
        self.lose(UnknownMemberId(reason))

    async def _stop_heart(self) -> None:
        if self._heart is not None:
            self._heart.cancel()
            await asyncio.gather(self._heart, return_exceptions=True)
            self._heart = None

    # ---- leaving ----

    def abandon_join(self) -> None:
        """Close the connection of an unanswered join, because the broker reads no more from it."""
        self._joins_at.hang_up(self._config.group_id)

    async def leave(self, reason: str) -> None:
        """Stop the heartbeats and leave the group, unless the member is static."""
        await self._stop_heart()
        await self._send_leave(reason)
        self._member_id = ""
        self._generation = _NO_GENERATION
        self._held = Held()
        self.counts = None
        self.rejoin_reason = ""
        self.error = None

    async def _send_leave(self, reason: str) -> None:
        """Try to send LeaveGroup. If this fails, the group waits for the session timeout.

        A coordinator that is too slow to respond still receives the request.
        """
        # A static member stays in its group for session.timeout.ms, because it may return
        # (KIP-345).
        if not self._member_id or self._instance_id is not None:
            return
        group_id = self._config.group_id
        try:
            async with asyncio.timeout(_LEAVE_S):
                await self._ask_to_leave(group_id, reason)
        except TimeoutError:
            _log.info("group %r: left without waiting for the response", group_id)
        except (Unreachable, KafkaError) as error:
            _log.info("group %r: could not leave: %s", group_id, error)

    async def _ask_to_leave(self, group_id: str, reason: str) -> None:
        version = (await self._coordinators.channel(group_id)).version(LEAVE_GROUP)
        request = LeaveGroupRequest(group_id=group_id)
        if version >= _MANY_LEAVE_FROM:
            request.members = [MemberIdentity(member_id=self._member_id, reason=reason)]
        else:
            request.member_id = self._member_id
        answer = await self._coordinators.call(group_id, LEAVE_GROUP, request, LeaveGroupResponse)
        for code in (answer.error_code, *(each.error_code for each in answer.members)):
            self._coordinators.check(group_id, code)


MEMBERSHIP_OVER = (UnknownMemberId, IllegalGeneration)
"""The errors that report that the group has removed this member. The member may rejoin."""

_AGAIN = (Unreachable, RebalanceInProgress, *MEMBERSHIP_OVER)
