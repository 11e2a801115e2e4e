"""Runs the rebalance of a group, which leads from one generation to the next.

    begin       After a change, all members have to rejoin, even those that are waiting for an
                assignment.
    complete    When all members have joined or the time is up, the members that did not join are
                removed. The others form the next generation, and its leader receives the list of
                members.
    settle      When the leader has sent the assignment, it is written to the log, and then every
                member receives its part.

The timeouts are the same as in Kafka 3.9: the rebalance timeout applies first to joining and then
again to syncing. The initial delay of a new group never ends early and is extended by each new
member (KIP-134).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.coordinator.decision import AT_ONCE
from barnabas.coordinator.group import Group, GroupState
from barnabas.coordinator.movement import movement
from barnabas.coordinator.rebalance_log import Cause, RebalanceLog, cause
from barnabas.errors import KafkaError, RebalanceInProgress, UnknownMemberId
from barnabas.protocol.consumer_protocol import CONSUMER_PROTOCOL
from barnabas.protocol.messages.join_group import JoinGroupResponse, JoinGroupResponseMember
from barnabas.protocol.messages.sync_group import SyncGroupResponse

_UNRESPONSIVE = "check whether the member's process is running and reaches the broker"
_SLOW = "let the member poll more often, or raise its max.poll.interval.ms"

if TYPE_CHECKING:
    from barnabas.coordinator.decision import Turn
    from barnabas.coordinator.member import Member, Parked

_NULLABLE_PROTOCOL: Final = 7  # the first version of JoinGroup that can express "no protocol"


def begin(turn: Turn, group: Group, why: Cause) -> None:
    """Require all members to rejoin.

    If a rebalance is already in progress, only add the cause to it.
    """
    note_cause(turn, group, why)
    _prepare(turn, group)


def note_cause(turn: Turn, group: Group, why: Cause) -> None:
    """Add a cause to the log of the current rebalance, which is created if there is none."""
    if group.rebalance is None:
        group.rebalance = RebalanceLog(turn.now_ms, group.generation, group.assignments())
    group.rebalance.add(why)


def _prepare(turn: Turn, group: Group) -> None:
    if group.state is GroupState.PREPARING:
        return
    for member in group.members.values():
        refuse_sync(turn, member, RebalanceInProgress)
    group.unsynced.clear()
    # KIP-134: if several members start together, wait for all of them instead of rebalancing for
    # each one.
    if group.state is GroupState.EMPTY:
        delay_ms = turn.config.initial_rebalance_delay_ms
        group.has_newcomer = False
        group.initial_until_ms = turn.now_ms + max(group.rebalance_timeout_ms, delay_ms)
        turn.timers.set(group.timer, turn.now_ms + delay_ms)
    else:
        turn.timers.set(group.timer, turn.now_ms + group.rebalance_timeout_ms)
    _enter(turn, group, GroupState.PREPARING)


def expel(turn: Turn, group: Group, member: Member, why: Cause) -> None:
    """Remove the member, and start a rebalance."""
    note_cause(turn, group, why)
    _drop(turn, group, member)
    _prepare(turn, group)
    complete_if_all_joined(turn, group)


def _drop(turn: Turn, group: Group, member: Member) -> None:
    """Remove the member.

    Its waiting requests are answered with UNKNOWN_MEMBER_ID, so the client joins as a new member.
    """
    refuse_join(turn, group, member, UnknownMemberId)
    refuse_sync(turn, member, UnknownMemberId)
    turn.timers.cancel(member.timer)
    group.remove(member)


def complete_if_all_joined(turn: Turn, group: Group) -> None:
    """Complete the rebalance if it has nothing left to wait for. Call this after each change."""
    if (
        group.state is GroupState.PREPARING
        and group.initial_until_ms is None
        and group.have_all_joined
    ):
        _complete(turn, group)


def on_phase_expired(turn: Turn, group: Group) -> None:
    """Handle the expiry of the group's timer, which limits the current phase."""
    if group.state is GroupState.PREPARING:
        until_ms = group.initial_until_ms
        # KIP-134: a member joined during the delay, so run the delay again, but not beyond the
        # rebalance timeout.
        if until_ms is not None and group.has_newcomer and turn.now_ms < until_ms:
            group.has_newcomer = False
            delayed_ms = turn.now_ms + turn.config.initial_rebalance_delay_ms
            turn.timers.set(group.timer, min(delayed_ms, until_ms))
        else:
            _complete(turn, group)
    # In Kafka 3.x, members that do not sync in time are removed, so the group does not wait for a
    # dead leader.
    elif group.unsynced:
        for member_id in sorted(group.unsynced):
            member = group.members[member_id]
            why = cause(member, "did not send its SyncGroup in time", advice=_UNRESPONSIVE)
            note_cause(turn, group, why)
            _drop(turn, group, member)
        _prepare(turn, group)
        complete_if_all_joined(turn, group)


def on_session_expired(turn: Turn, group: Group, member_id: str) -> None:
    """Expel the member, which starts a rebalance, or drop a member id that was never used.

    A member cannot send heartbeats while it is waiting for the others, so it is not expelled, and
    its session is restarted when its request is answered. Only a new member is limited in how long
    it can wait, because the client may not know its member id.
    """
    if member_id in group.pending:
        forget_pending(turn, group, member_id)
        return
    member = group.members[member_id]
    if member.is_new or not (member.joining or member.syncing):
        why = cause(member, "session timed out", advice=_UNRESPONSIVE)
        expel(turn, group, member, why)


def forget_pending(turn: Turn, group: Group, member_id: str) -> None:
    """Drop a member id that was issued to a client but has not been used."""
    turn.timers.cancel(group.pending.pop(member_id))
    complete_if_all_joined(turn, group)


def _complete(turn: Turn, group: Group) -> None:
    """Start the next generation.

    Its members are those that have joined and all static members (KIP-345).
    """
    group.initial_until_ms = None
    for member in [one for one in group.members.values() if one.joining is None]:
        # KIP-345: a static member is not removed until its session ends.
        if member.instance_id is None:
            note_cause(turn, group, cause(member, "did not rejoin in time", advice=_SLOW))
            _drop(turn, group, member)
    if not group.members:
        _become_empty(turn, group)
        return
    leader = group.members[group.leader_id or ""]
    # The leader is a static member that did not rejoin, so choose a leader that did.
    if leader.joining is None:
        joined = next((one for one in group.members.values() if one.joining), None)
        if joined is None:
            # Only static members that did not rejoin are left. The rebalance ends when their
            # sessions expire.
            turn.timers.set(group.timer, turn.now_ms + group.rebalance_timeout_ms)
            return
        group.leader_id = joined.member_id
    group.generation += 1
    group.protocol = group.choose_protocol()
    _enter(turn, group, GroupState.COMPLETING)
    for member in group.members.values():
        parked = group.take_join(member)
        if parked is not None:
            turn.reply(parked.ticket, joined_answer(group, member), AT_ONCE)
        # The member now knows its id and sends heartbeats, so from now on its session timeout
        # applies.
        member.is_new = False
        prolong_session(turn, member)
    group.unsynced = set(group.members)
    turn.timers.set(group.timer, turn.now_ms + group.rebalance_timeout_ms)


def _become_empty(turn: Turn, group: Group) -> None:
    group.generation += 1
    group.protocol = None
    turn.timers.cancel(group.timer)
    _enter(turn, group, GroupState.EMPTY)
    turn.records.append(group.record({}))
    _conclude(turn, group, {})


def settle(turn: Turn, group: Group, assignments: dict[str, bytes]) -> None:
    """Record the leader's assignments, keyed by member id.

    Members that the leader omitted get an empty assignment.

    The state of the group changes only when this record is in the log.
    """
    # As in Kafka, an assignment is logged before any member receives it, so the next coordinator
    # knows which partitions the members read.
    turn.records.append(group.record(assignments))
    for member in group.members.values():
        parked, member.syncing = member.syncing, None
        if parked is not None:
            assigned = assignments.get(member.member_id, b"")
            turn.reply(parked.ticket, synced_answer(group, assigned))
            prolong_session(turn, member)
    after = {one.name: assignments.get(one.member_id, b"") for one in group.members.values()}
    _conclude(turn, group, after)


def _conclude(turn: Turn, group: Group, after: dict[str, bytes]) -> None:
    """Prepare the log line about the rebalance. The rebalance ends when the record is appended."""
    rebalance = group.rebalance
    assert rebalance is not None, "no rebalance without a cause"
    moved = movement(group.protocol_type == CONSUMER_PROTOCOL, rebalance.before, after)
    group.ended = ended = rebalance.end(
        turn.now, group.group_id, group.generation, len(after), moved
    )
    turn.events.append(rebalance.event(group.group_id, ended))


def _enter(turn: Turn, group: Group, state: GroupState) -> None:
    group.state = state
    group.state_since_ms = turn.now.wall_ms


def prolong_session(turn: Turn, member: Member) -> None:
    """Restart the session timeout of the member."""
    turn.timers.set(member.timer, turn.now_ms + member.session_timeout_ms)


# --- answers -------------------------------------------------------------------------------------


def joined_answer(group: Group, member: Member) -> JoinGroupResponse:
    """Return a successful JoinGroup response. The response for the leader lists all members."""
    protocol = group.protocol or ""
    is_leader = member.member_id == group.leader_id
    members = [
        JoinGroupResponseMember(
            member_id=one.member_id,
            group_instance_id=one.instance_id,
            metadata=one.subscription(protocol),
        )
        for one in (group.members.values() if is_leader else ())
    ]
    return JoinGroupResponse(
        generation_id=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=protocol,
        leader=group.leader_id or "",
        member_id=member.member_id,
        members=members,
    )


def refused_join(
    error: type[KafkaError] | KafkaError, member_id: str, version: int
) -> JoinGroupResponse:
    """Build the JoinGroup response for an error.

    Before version 7, "no protocol" is expressed as an empty name.
    """
    return JoinGroupResponse(
        error_code=error.code,
        member_id=member_id,
        protocol_name=None if version >= _NULLABLE_PROTOCOL else "",
    )


def synced_answer(group: Group, assignment: bytes) -> SyncGroupResponse:
    return SyncGroupResponse(
        protocol_type=group.protocol_type, protocol_name=group.protocol, assignment=assignment
    )


def refuse_join(turn: Turn, group: Group, member: Member, error: type[KafkaError]) -> None:
    """If the member has a parked JoinGroup, answer it with the error."""
    parked: Parked | None = group.take_join(member)
    if parked is not None:
        # If a client has no member id, it joins as a new member.
        member_id = "" if error is UnknownMemberId else member.member_id
        turn.reply(parked.ticket, refused_join(error, member_id, parked.version), AT_ONCE)


def refuse_sync(turn: Turn, member: Member, error: type[KafkaError]) -> None:
    """If the member has a parked SyncGroup, answer it with the error."""
    parked, member.syncing = member.syncing, None
    if parked is not None:
        turn.reply(parked.ticket, SyncGroupResponse(error_code=error.code), AT_ONCE)
        prolong_session(turn, member)
