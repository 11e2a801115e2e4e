"""Implements the group coordinator (GC-2) as a machine for the groups of one partition.

The machine returns a `Decision` for each request and for each deadline. Its hard state (the groups
as last recorded, and all offsets) changes only in `apply` and `end_transaction`. Each decision must
be carried out or rejected before the machine receives the next event.

Invariants: each ticket is answered exactly once, either by the decision for its own event or by a
later decision. Replaying the records restores the state that the machine had after the last record
was applied.

A rebalance does not survive a change of coordinator: members that were rebalancing get an error for
their generation and have to rejoin.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from barnabas.coordinator import commits, joining, membership, rebalance
from barnabas.coordinator.decision import (
    ALL_REPLICATED,
    AT_ONCE,
    NO_PRODUCER_ID,
    NOTHING,
    Decision,
    Now,
    Reply,
    StateRecord,
    Turn,
)
from barnabas.coordinator.group import Group, GroupState
from barnabas.coordinator.joining import Attempt, Caller
from barnabas.coordinator.member import Parked
from barnabas.coordinator.offset_answers import commit_answer, transactional_answer
from barnabas.coordinator.offsets import Offsets
from barnabas.coordinator.rebalance_log import Cause
from barnabas.coordinator.records import (
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from barnabas.coordinator.settings import GroupConfig
from barnabas.coordinator.timers import Timer, Timers
from barnabas.errors import (
    NONE,
    GroupIdNotFound,
    InvalidGroupId,
    InvalidSessionTimeout,
    NonEmptyGroup,
    UnknownMemberId,
)
from barnabas.protocol.messages.delete_groups import DeletableGroupResult, DeleteGroupsResponse
from barnabas.protocol.messages.describe_groups import DescribedGroup, DescribedGroupMember
from barnabas.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from barnabas.protocol.messages.join_group import JoinGroupRequest
from barnabas.protocol.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
)
from barnabas.protocol.messages.list_groups import (
    ListedGroup,
    ListGroupsRequest,
    ListGroupsResponse,
)
from barnabas.protocol.messages.offset_commit import OffsetCommitRequest
from barnabas.protocol.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from barnabas.protocol.messages.offset_fetch import OffsetFetchGroup
from barnabas.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from barnabas.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest

__all__ = ["Caller", "Groups"]

_SEVERAL_LEAVE: Final = 3  # the first version of LeaveGroup that can name several members

_CLASSIC: Final = "classic"
"""The type of every group in this broker. The other group type is defined by KIP-848."""

# The maximum amount of work in one call of `expire`. It limits the time that the call takes and the
# size of the append.
_MOST_TIMERS = 200
_MOST_EXAMINED = 200
_MOST_TOMBSTONES = 1000


class Groups:
    """Coordinates the groups of one shard."""

    __slots__ = (
        "_deleted_topics",
        "_examination",
        "_timers",
        "_to_examine",
        "config",
        "epoch",
        "groups",
        "offsets",
        "partition",
    )

    def __init__(self, partition: int, epoch: int, config: GroupConfig) -> None:
        self.partition = partition
        self.epoch = epoch
        self.config = config
        """The settings. The object is replaced when the broker's configuration changes."""
        self.offsets = Offsets()
        self.groups: dict[str, Group] = {}
        """The groups that have members or a record. Other classes may read this mapping."""
        self._timers = Timers()
        self._examination = Timer("")  # when to look for expired offsets again
        self._to_examine: deque[str] = deque()
        self._deleted_topics: set[str] = set()  # deleted topics that may still have offsets

    # --- members ---------------------------------------------------------------------------------

    def join(self, ticket: int, request: JoinGroupRequest, caller: Caller, now: Now) -> Decision:
        """Handle JoinGroup. The request is usually parked until the other members have joined."""
        config = self.config
        turn = self._turn(now)
        attempt = Attempt.of(ticket, request, caller)
        timeout_ms = request.session_timeout_ms
        if not request.group_id:
            attempt.refuse(turn, InvalidGroupId, request.member_id)
        elif not config.min_session_timeout_ms <= timeout_ms <= config.max_session_timeout_ms:
            attempt.refuse(turn, InvalidSessionTimeout, request.member_id)
        else:
            group = self._find(request.group_id)
            # Member ids are issued by coordinators, so no member id is valid for an unknown group.
            if group is None and request.member_id:
                attempt.refuse(turn, UnknownMemberId, request.member_id)
            else:
                # The first member creates the group. If this member is rejected, the new group is
                # dropped.
                self._join(turn, group or Group(request.group_id, now.wall_ms), attempt)
        return turn.decision()

    def _join(self, turn: Turn, group: Group, attempt: Attempt) -> None:
        # A group that has only offsets is added to `groups` when its first member joins.
        self.groups[group.group_id] = group
        joining.join(turn, group, attempt)
        self._drop_if_unused(group)

    def sync(self, ticket: int, request: SyncGroupRequest, now: Now) -> Decision:
        """Handle SyncGroup. The request is parked until the leader has sent its own SyncGroup."""
        group = self.groups.get(request.group_id)
        turn = self._turn(now)
        if group is None:
            error = UnknownMemberId if request.group_id else InvalidGroupId
            turn.reply(ticket, SyncGroupResponse(error_code=error.code), AT_ONCE)
        else:
            membership.sync(turn, group, Parked(ticket, -1), request)
        return turn.decision()

    def heartbeat(self, ticket: int, request: HeartbeatRequest, now_ms: int) -> Decision:
        """Handle Heartbeat: extend the member's session, and report if the group is rebalancing."""
        group = self.groups.get(request.group_id)
        if group is not None:
            code = membership.heartbeat(group, request, self._timers, now_ms)
        else:
            code = (UnknownMemberId if request.group_id else InvalidGroupId).code
        return Decision((), (Reply(ticket, HeartbeatResponse(error_code=code), AT_ONCE),))

    def leave(self, ticket: int, request: LeaveGroupRequest, version: int, now: Now) -> Decision:
        """Handle LeaveGroup, which removes one member or, from version 3, several members."""
        turn = self._turn(now)
        if not request.group_id:
            turn.reply(ticket, LeaveGroupResponse(error_code=InvalidGroupId.code), AT_ONCE)
            return turn.decision()
        several = version >= _SEVERAL_LEAVE
        leaving = request.members if several else [MemberIdentity(member_id=request.member_id)]
        group = self.groups.get(request.group_id)
        results = membership.leave(turn, group, leaving)
        if several:
            answer = LeaveGroupResponse(members=results)
        else:
            answer = LeaveGroupResponse(error_code=results[0].error_code)
        # As in Kafka, a member that leaves does not wait until the record of the empty group is
        # replicated.
        turn.reply(ticket, answer, AT_ONCE)
        if group is not None:
            self._drop_if_unused(group)
        return turn.decision()

    # --- groups ----------------------------------------------------------------------------------

    def describe(self, ticket: int, group_id: str, *, with_events: bool) -> Decision:
        """Reply with a `DescribedGroup`, which describes the group."""
        answer = _description(group_id, self._find(group_id), with_events=with_events)
        return Decision(replies=(Reply(ticket, answer, AT_ONCE),))

    def list_groups(self, ticket: int, request: ListGroupsRequest) -> Decision:
        """List the groups that match the filters in the request.

        Groups that have only offsets are included.
        """
        found = _matching(self._all(), request)
        return Decision(replies=(Reply(ticket, ListGroupsResponse(groups=found), AT_ONCE),))

    def delete(self, ticket: int, group_ids: Sequence[str], now: Now) -> Decision:
        """Handle DeleteGroups, which removes groups without members and all their offsets."""
        turn = self._turn(now)
        results = []
        for group_id in dict.fromkeys(group_ids):
            group = self._find(group_id)
            if group is None:
                code = GroupIdNotFound.code
            # KIP-229: a group with members is in use.
            elif group.state is not GroupState.EMPTY:
                code = NonEmptyGroup.code
            else:
                code = NONE
                turn.records += self.offsets.tombstones(group_id)
                self._forget(turn.records, group)
            results.append(DeletableGroupResult(group_id=group_id, error_code=code))
        turn.reply(ticket, DeleteGroupsResponse(results=results))
        return turn.decision()

    # --- offsets ---------------------------------------------------------------------------------

    def commit(self, ticket: int, request: OffsetCommitRequest, now: Now) -> Decision:
        """Handle OffsetCommit. While the group has no members, any client may commit."""
        error = commits.check_commit(self._find(request.group_id), request)
        if error is not None:
            return Decision(replies=(Reply(ticket, commit_answer(request, error), AT_ONCE),))
        self._shown_alive(request.group_id, request.member_id, now.monotonic_ms)
        limit = self.config.offset_metadata_max_bytes
        return self.offsets.commit(ticket, request, now.wall_ms, limit)

    def commit_transactional(
        self, ticket: int, request: TxnOffsetCommitRequest, wall_ms: int
    ) -> Decision:
        """Handle TxnOffsetCommit.

        The offsets become visible once the producer's transaction is committed.
        """
        error = commits.check_transactional(self.groups.get(request.group_id), request)
        if error is not None:
            refusal = transactional_answer(request, error)
            return Decision(replies=(Reply(ticket, refusal, AT_ONCE),))
        limit = self.config.offset_metadata_max_bytes
        return self.offsets.commit_transactional(ticket, request, wall_ms, limit)

    def fetch(
        self, ticket: int, wanted: OffsetFetchGroup, require_stable: bool, high_watermark: int
    ) -> Decision:
        """Reply with an `OffsetFetchGroupResponse`.

        Any client may fetch offsets, not just the group's members.
        """
        reply = self.offsets.fetch(
            ticket, wanted, require_stable=require_stable, high_watermark=high_watermark
        )
        return Decision((), (reply,))

    def delete_offsets(self, ticket: int, request: OffsetDeleteRequest, now_ms: int) -> Decision:
        """Handle OffsetDelete, for topics to which no member is subscribed (KIP-496)."""
        group = self._find(request.group_id)
        if group is None:
            error = GroupIdNotFound if request.group_id else InvalidGroupId
            answer = OffsetDeleteResponse(error_code=error.code)
            return Decision(replies=(Reply(ticket, answer, AT_ONCE),))
        topics = [topic.name for topic in request.topics]
        subscribed = commits.topics_in_use(group, topics)
        # KIP-496: if the subscriptions cannot be read, any topic may be in use.
        if subscribed is None:
            answer = OffsetDeleteResponse(error_code=NonEmptyGroup.code)
            return Decision(replies=(Reply(ticket, answer, AT_ONCE),))
        decision = self.offsets.delete(ticket, request, subscribed)
        records = list(decision.records)
        self._forget_if_last(records, group)
        return decision._replace(records=tuple(records))

    def topics_deleted(self, names: Iterable[str]) -> Decision:
        """Remove the offsets of deleted topics.

        A topic can have many offsets, so they are removed step by step in `expire`, which is due
        immediately.
        """
        self._deleted_topics.update(names)
        self._to_examine.extend(self.offsets.groups_with(self._deleted_topics))
        return NOTHING

    # --- hard state ------------------------------------------------------------------------------

    def apply(
        self,
        record: StateRecord,
        offset: int,
        producer_id: int = NO_PRODUCER_ID,
        high_watermark: int = ALL_REPLICATED,
    ) -> None:
        """Apply the record at this offset of the log.

        If it was written in a transaction, its producer is passed too.
        """
        key, value = record
        if isinstance(key, OffsetCommitKey):
            assert value is None or isinstance(value, OffsetCommitValue)
            self.offsets.apply(key, value, offset, producer_id, high_watermark)
            return
        assert isinstance(key, GroupMetadataKey)
        if value is None:
            group = self.groups.pop(key.group, None)
            if group is not None:
                for timer in group.timers():
                    self._timers.cancel(timer)
            return
        assert isinstance(value, GroupMetadataValue)
        group = self.groups.get(key.group)
        if group is None:
            group = self.groups[key.group] = Group(key.group)
        group.apply(value)
        group.known_after = offset + 1

    def end_transaction(self, producer_id: int, is_commit: bool) -> None:
        """Record that the marker of the producer's transaction is in this partition."""
        self.offsets.end_transaction(producer_id, is_commit)

    # --- time ------------------------------------------------------------------------------------

    def on_loaded(self, now: Now) -> Decision:
        """Finish the replay. Every member gets a full session timeout to send a heartbeat."""
        turn = self._turn(now)
        for group in self.groups.values():
            # KIP-389: group.max.size was lowered, so the group rebalances, and only the first
            # members to rejoin stay.
            if len(group.members) > self.config.max_size:
                why = Cause("the coordinator", "found more members than group.max.size")
                rebalance.begin(turn, group, why)
            for member in group.members.values():
                # The member may have been sending heartbeats to the previous coordinator.
                rebalance.prolong_session(turn, member)
        self._plan_examination(now.monotonic_ms)
        return turn.decision()

    def deadline_ms(self) -> int | None:
        """Return when `expire` must be called; the time may be earlier than necessary."""
        return 0 if self._to_examine else self._timers.next_ms()

    def expire(self, now: Now, *, may_forget: bool = True) -> list[Decision]:
        """Return decisions for some of the deadlines that have passed.

        More deadlines may be due immediately.

        If `may_forget` is false, the clock cannot be trusted, so no offset expires.
        """
        decisions = []
        for _ in range(_MOST_TIMERS):
            if not self._timers.is_due(now.monotonic_ms):
                break
            timer = self._timers.next(now.monotonic_ms)
            if timer is not None:
                decisions.append(self._on_timer(timer, now))
        decisions += map(Decision, _batches(self._examine(now.wall_ms if may_forget else None)))
        return [decision for decision in decisions if decision is not NOTHING]

    def _on_timer(self, timer: Timer, now: Now) -> Decision:
        # A group that has only offsets has no timer, so all groups are examined in turn.
        if timer is self._examination:
            self._to_examine.extend({**self.groups, **dict.fromkeys(self.offsets.groups)})
            self._plan_examination(now.monotonic_ms)
            return NOTHING
        turn = self._turn(now)
        group = self.groups[timer.group_id]
        if timer is group.timer:
            rebalance.on_phase_expired(turn, group)
        else:
            rebalance.on_session_expired(turn, group, timer.member_id)
        self._drop_if_unused(group)
        return turn.decision()

    def _plan_examination(self, now_ms: int) -> None:
        interval_ms = self.config.offsets_retention_check_interval_ms
        self._timers.set(self._examination, now_ms + interval_ms)

    def _examine(self, wall_ms: int | None) -> Iterator[StateRecord]:
        """Yield tombstones for expired offsets of the next groups, and for the groups that have no
        offsets left. Both are written in the same step, because otherwise an offset committed in
        between would be lost.
        """
        for _ in range(min(_MOST_EXAMINED, len(self._to_examine))):
            group_id = self._to_examine.popleft()
            group = self._find(group_id)
            if group is not None:
                records = self._outlived_offsets(group, wall_ms)
                self._forget_if_last(records, group)
                yield from records
        if not self._to_examine:
            self._deleted_topics.clear()

    def _outlived_offsets(self, group: Group, wall_ms: int | None) -> list[StateRecord]:
        """Return tombstones for offsets of deleted topics and for expired offsets (KIP-211)."""
        records: dict[tuple[str, int], StateRecord] = {}
        since_ms, subscribed = commits.retention_of(group)
        # KIP-211: offsets expire by age, but only if the clock can be trusted.
        if subscribed is not None and wall_ms is not None:
            retention_ms = self.config.offsets_retention_ms
            for record in self.offsets.expired_tombstones(
                group.group_id, wall_ms, retention_ms, since_ms, subscribed
            ):
                records[_place(record)] = record
        # A new topic with the same name must not start at these offsets.
        if self._deleted_topics:
            for record in self.offsets.tombstones(group.group_id, self._deleted_topics):
                records[_place(record)] = record
        return list(records.values())

    # --- lookups ----------------------------------------------------------------------------

    def _turn(self, now: Now) -> Turn:
        return Turn(self.config, self._timers, now)

    def _find(self, group_id: str) -> Group | None:
        """Return the group. A group without members still exists as long as it has offsets."""
        group = self.groups.get(group_id)
        if group is None and group_id in self.offsets.groups:
            # This object is temporary, because the group has no members and no state that must be
            # kept.
            group = Group(group_id)
        return group

    def _all(self) -> Iterator[Group]:
        yield from self.groups.values()
        yield from (Group(name) for name in self.offsets.groups if name not in self.groups)

    def _shown_alive(self, group_id: str, member_id: str, now_ms: int) -> None:
        group = self.groups.get(group_id)
        member = None if group is None else group.members.get(member_id)
        # As in Kafka, a commit extends the session like a heartbeat.
        if member is not None:
            self._timers.set(member.timer, now_ms + member.session_timeout_ms)

    def _forget(self, records: list[StateRecord], group: Group) -> None:
        """Remove the group.

        If the group has a record, write a tombstone; otherwise remove it immediately.
        """
        if group.is_stored:
            records.append(StateRecord(GroupMetadataKey(group=group.group_id), None))
        else:
            known = self.groups.pop(group.group_id, None)
            for timer in () if known is None else known.timers():
                self._timers.cancel(timer)

    def _forget_if_last(self, records: list[StateRecord], group: Group) -> None:
        """Remove the group if it has no members and these tombstones remove its last offset."""
        is_empty = group.state is GroupState.EMPTY and not group.pending
        # There is at most one tombstone per offset, so if the counts are equal, every offset is
        # removed.
        if is_empty and len(records) == self.offsets.count(group.group_id):
            self._forget(records, group)

    def _drop_if_unused(self, group: Group) -> None:
        if group.is_unused:
            self.groups.pop(group.group_id, None)
            self._timers.cancel(group.timer)


def _place(record: StateRecord) -> tuple[str, int]:
    key = record.key
    assert isinstance(key, OffsetCommitKey)
    return key.topic, key.partition


def _batches(records: Iterable[StateRecord]) -> Iterator[tuple[StateRecord, ...]]:
    """Split tombstones into batches small enough for one append."""
    batch: list[StateRecord] = []
    for record in records:
        batch.append(record)
        if len(batch) == _MOST_TOMBSTONES:
            yield tuple(batch)
            batch = []
    if batch:
        yield tuple(batch)


def _description(group_id: str, group: Group | None, *, with_events: bool) -> DescribedGroup:
    """Describe the current state of the group.

    An unknown group (None) is reported as "Dead", not as an error.

    Subscriptions and assignments are included only if the group is stable. During a rebalance, they
    are outdated or not yet valid.
    """
    if group is None:
        return DescribedGroup(group_id=group_id, group_state=GroupState.DEAD.value)
    is_stable = group.state is GroupState.STABLE
    protocol = (group.protocol or "") if is_stable else ""
    return DescribedGroup(
        group_id=group_id,
        group_state=group.state.value,
        protocol_type=group.protocol_type or "",
        protocol_data=protocol,
        members=[
            DescribedGroupMember(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                member_metadata=member.subscription(protocol) if is_stable else b"",
                member_assignment=member.assignment if is_stable else b"",
            )
            for member in group.members.values()
        ],
        events=list(group.events) if with_events else [],
    )


def _matching(groups: Iterable[Group], wanted: ListGroupsRequest) -> list[ListedGroup]:
    """Return the groups that match the state and type filters, if any. Case is ignored."""
    states = {state.lower() for state in wanted.states_filter}
    types = {kind.lower() for kind in wanted.types_filter}
    # KIP-848 added the type filter. It may ask for a type of group that this broker does not have.
    if types and _CLASSIC not in types:
        return []
    return [
        ListedGroup(
            group_id=group.group_id,
            protocol_type=group.protocol_type or "",
            group_state=group.state.value,
            group_type=_CLASSIC,
        )
        for group in groups
        if not states or group.state.value.lower() in states
    ]
