"""Handles SyncGroup, Heartbeat and LeaveGroup, which the members of a generation send.

Each request is checked in the same order as in Kafka: first the member (whether it exists and still
has its instance id), then the generation, and then the state of the group. A request from an
earlier generation therefore has no effect, no matter how late it arrives.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from barnabas.coordinator.decision import AT_ONCE
from barnabas.coordinator.group import Group, GroupState
from barnabas.coordinator.rebalance import (
    expel,
    forget_pending,
    prolong_session,
    refuse_sync,
    settle,
    synced_answer,
)
from barnabas.coordinator.rebalance_log import cause
from barnabas.errors import (
    NONE,
    IllegalGeneration,
    InconsistentGroupProtocol,
    KafkaError,
    RebalanceInProgress,
    UnknownMemberId,
)
from barnabas.protocol.messages.leave_group import REMOVED_BY_ADMIN, MemberResponse
from barnabas.protocol.messages.sync_group import SyncGroupResponse

if TYPE_CHECKING:
    from barnabas.coordinator.decision import Turn
    from barnabas.coordinator.member import Parked
    from barnabas.coordinator.timers import Timers
    from barnabas.protocol.messages.heartbeat import HeartbeatRequest
    from barnabas.protocol.messages.leave_group import MemberIdentity
    from barnabas.protocol.messages.sync_group import SyncGroupRequest


def sync(turn: Turn, group: Group, parked: Parked, request: SyncGroupRequest) -> None:
    """Reply with the member's assignment, either at once or when the leader has sent it."""
    error = _check_sync(group, request)
    if error is not None:
        turn.reply(parked.ticket, SyncGroupResponse(error_code=error.code), AT_ONCE)
        return
    member = group.members[request.member_id]
    group.unsynced.discard(member.member_id)
    # This was the last member that had to sync, so the sync phase has ended in time.
    if not group.unsynced:
        turn.timers.cancel(group.timer)
    # The assignment is already in the log, and the response is sent once it is replicated.
    if group.state is GroupState.STABLE:
        prolong_session(turn, member)
        turn.reply(parked.ticket, synced_answer(group, member.assignment), group.known_after)
        return
    refuse_sync(turn, member, RebalanceInProgress)  # the client abandoned its earlier SyncGroup
    member.syncing = parked
    # GC-2: assignments are accepted only from the leader.
    if member.member_id == group.leader_id:
        settle(turn, group, {one.member_id: bytes(one.assignment) for one in request.assignments})


def _check_sync(group: Group, request: SyncGroupRequest) -> type[KafkaError] | None:
    error = group.check_member(request.member_id, request.group_instance_id)
    if error is not None:
        return error
    if request.generation_id != group.generation:
        return IllegalGeneration
    # KIP-559: in version 5, the request and the response contain the protocol, so that a proxy can
    # parse the assignment.
    if request.protocol_type is not None and request.protocol_type != group.protocol_type:
        return InconsistentGroupProtocol
    if request.protocol_name is not None and request.protocol_name != group.protocol:
        return InconsistentGroupProtocol
    return RebalanceInProgress if group.state is GroupState.PREPARING else None


def heartbeat(group: Group, request: HeartbeatRequest, timers: Timers, now_ms: int) -> int:
    """Return an error code.

    Thousands of heartbeats arrive per second, so neither a `Turn` nor a list is created.
    """
    member = group.members.get(request.member_id)
    # A valid heartbeat needs only one lookup. The error is determined only in this branch.
    if member is None or member.instance_id != request.group_instance_id:
        error = group.check_member(request.member_id, request.group_instance_id)
        if error is not None:
            return error.code
        member = group.members[request.member_id]
    if request.generation_id != group.generation:
        return IllegalGeneration.code
    # A rebalance is in progress, but the member is alive and needs time to rejoin, so extend its
    # session.
    timers.set(member.timer, now_ms + member.session_timeout_ms)
    return RebalanceInProgress.code if group.state is GroupState.PREPARING else NONE


def leave(
    turn: Turn, group: Group | None, members: Sequence[MemberIdentity]
) -> list[MemberResponse]:
    """Remove these members, and return an error code for each of them."""
    return [
        MemberResponse(
            member_id=one.member_id,
            group_instance_id=one.group_instance_id,
            error_code=_leave_one(turn, group, one),
        )
        for one in members
    ]


def _leave_one(turn: Turn, group: Group | None, identity: MemberIdentity) -> int:
    if group is None:
        return UnknownMemberId.code
    if not identity.member_id:
        # Static members are removed by an administrator, regardless of their current member id.
        member = group.static_member(identity.group_instance_id)
        if member is None:
            return UnknownMemberId.code
    # KIP-394: this member id was assigned, but no client has joined with it yet.
    elif identity.member_id in group.pending:
        forget_pending(turn, group, identity.member_id)
        return NONE
    else:
        error = group.check_member(identity.member_id, identity.group_instance_id)
        if error is not None:
            return error.code
        member = group.members[identity.member_id]
    why = cause(member, "left", identity.reason)
    is_removed = not identity.member_id or (identity.reason or "").startswith(REMOVED_BY_ADMIN)
    expel(turn, group, member, why._replace(is_own_choice=not is_removed))
    return NONE
