"""Handles JoinGroup: admits members, assigns their ids and decides whether the group rebalances.

no member id, no instance id    gets an id and, from version 4, has to rejoin with it (KIP-394)
no member id, instance id       is a static member, which may take its earlier place (KIP-345)
a pending member id             rejoins, and becomes a member
a known member id               rejoins, possibly with another subscription
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from barnabas.coordinator.decision import AT_ONCE
from barnabas.coordinator.group import Group, GroupState
from barnabas.coordinator.member import Member, Parked, Protocols, protocols_of
from barnabas.coordinator.rebalance import (
    begin,
    complete_if_all_joined,
    expel,
    joined_answer,
    prolong_session,
    refuse_join,
    refuse_sync,
    refused_join,
)
from barnabas.coordinator.rebalance_log import cause
from barnabas.coordinator.timers import Timer
from barnabas.errors import (
    FencedInstanceId,
    GroupMaxSizeReached,
    InconsistentGroupProtocol,
    KafkaError,
    MemberIdRequired,
    RebalanceInProgress,
    UnknownMemberId,
)
from barnabas.protocol.messages.join_group import JoinGroupResponse, JoinGroupResponseMember

if TYPE_CHECKING:
    from barnabas.coordinator.decision import Turn
    from barnabas.coordinator.records import GroupMetadataValue
    from barnabas.protocol.messages.join_group import JoinGroupRequest

_OWN_REBALANCE_TIMEOUT: Final = 1  # the first version of JoinGroup that has this field
_MEMBER_ID_FIRST: Final = 4
_SKIP_ASSIGNMENT: Final = 9

# The client id is shortened for the member id, because a member id also contains a UUID but has the
# same maximum length, and because the group's record must fit into a batch.
_LONGEST_PREFIX_CHARACTERS: Final = 8_000

NEW_MEMBER_TIMEOUT_MS: Final = 300_000
"""The maximum time that a new member can wait for its first generation.

Until then, the client does not know its member id and cannot send heartbeats, and the loss of its
connection goes unnoticed. Without a limit, every client that gives up and retries would leave
another member behind.
"""


class Caller(NamedTuple):
    """The client that sent a JoinGroup."""

    client_id: str
    host: str
    """The client's address in Kafka's form, such as "/127.0.0.1"."""
    new_id: str
    """A random UUID as text, used if a new member id is needed."""
    version: int
    """The API version of the request."""


class Attempt(NamedTuple):
    """A JoinGroup request that is being handled, in parsed form."""

    parked: Parked
    request: JoinGroupRequest
    caller: Caller
    protocols: Protocols

    @classmethod
    def of(cls, ticket: int, request: JoinGroupRequest, caller: Caller) -> Attempt:
        parked = Parked(ticket, caller.version)
        return cls(parked, request, caller, protocols_of(request.protocols))

    def refuse(self, turn: Turn, error: type[KafkaError], member_id: str) -> None:
        refusal = refused_join(error, member_id, self.parked.version)
        turn.reply(self.parked.ticket, refusal, AT_ONCE)

    def describe_to(self, member: Member) -> None:
        """Copy the timeouts in the request to the member."""
        request = self.request
        has_own = self.caller.version >= _OWN_REBALANCE_TIMEOUT
        member.session_timeout_ms = request.session_timeout_ms
        member.rebalance_timeout_ms = (
            request.rebalance_timeout_ms if has_own else request.session_timeout_ms
        )


def join(turn: Turn, group: Group, attempt: Attempt) -> None:
    """Handle the JoinGroup: answer it at once, or park it until all other members have joined."""
    request = attempt.request
    member_id = request.member_id
    if not _has_room(group, member_id, turn.config.max_size):
        attempt.refuse(turn, GroupMaxSizeReached, "")
        _turn_away(turn, group, member_id)
    # Kafka checks this before the member id, too.
    elif not group.supports(request.protocol_type, attempt.protocols):
        attempt.refuse(turn, InconsistentGroupProtocol, member_id)
    elif not member_id:
        _join_without_id(turn, group, attempt)
    elif member_id in group.pending:
        if request.group_instance_id is None:
            turn.timers.cancel(group.pending.pop(member_id))
            _admit(turn, group, attempt, member_id)
        else:
            # Only dynamic members may use a pending member id.
            attempt.refuse(turn, UnknownMemberId, member_id)
    else:
        _rejoin(turn, group, attempt)
    complete_if_all_joined(turn, group)


def _has_room(group: Group, member_id: str, max_size: int) -> bool:
    """Enforce `group.max.size`.

    If the limit was lowered, the members that rejoin last are rejected.
    """
    if group.state is GroupState.EMPTY:
        return True
    member = group.members.get(member_id)
    if group.state is GroupState.PREPARING:
        # KIP-389: if the group has more members than allowed, it keeps the members that rejoin
        # first.
        is_waiting = member is not None and member.joining is not None
        return is_waiting or group.joined_count < max_size
    return member is not None or len(group.members) < max_size


def _turn_away(turn: Turn, group: Group, member_id: str) -> None:
    pending = group.pending.pop(member_id, None)
    if pending is not None:
        turn.timers.cancel(pending)
    member = group.members.get(member_id)
    if member is not None:
        expel(turn, group, member, cause(member, "found the group full"))


def _join_without_id(turn: Turn, group: Group, attempt: Attempt) -> None:
    """Handle a JoinGroup that has no member id, and assign a member id."""
    instance_id, caller = attempt.request.group_instance_id, attempt.caller
    prefix = caller.client_id if instance_id is None else instance_id
    member_id = f"{prefix[:_LONGEST_PREFIX_CHARACTERS]}-{caller.new_id}"
    member = group.static_member(instance_id)
    if member is not None:
        _take_over(turn, group, attempt, member, member_id)
    # KIP-394: the client must rejoin with its member id. Otherwise, each time a client times out
    # and retries, it would leave a member behind.
    elif instance_id is None and caller.version >= _MEMBER_ID_FIRST:
        timer = group.pending[member_id] = Timer(group.group_id, member_id)
        turn.timers.set(timer, turn.now_ms + attempt.request.session_timeout_ms)
        attempt.refuse(turn, MemberIdRequired, member_id)
    else:
        _admit(turn, group, attempt, member_id)


def _admit(turn: Turn, group: Group, attempt: Attempt, member_id: str) -> None:
    """Add a member to the group and start a rebalance."""
    request = attempt.request
    member = Member(group.group_id, member_id, request.group_instance_id, attempt.protocols)
    member.client_id = attempt.caller.client_id
    member.client_host = attempt.caller.host
    member.is_new = True
    attempt.describe_to(member)
    if not group.members:
        group.protocol_type = request.protocol_type
    # KIP-134: every further member that joins extends the initial delay.
    if group.state is GroupState.PREPARING and group.generation == 0:
        group.has_newcomer = True
    group.add(member)
    group.park_join(member, attempt.parked)
    turn.timers.set(member.timer, turn.now_ms + NEW_MEMBER_TIMEOUT_MS)
    begin(turn, group, cause(member, "joined"))


def _rejoin(turn: Turn, group: Group, attempt: Attempt) -> None:
    """Handle a JoinGroup that contains a member id."""
    request = attempt.request
    error = group.check_member(request.member_id, request.group_instance_id)
    if error is not None:
        attempt.refuse(turn, error, request.member_id)
        return
    member = group.members[request.member_id]
    if group.state is GroupState.PREPARING:
        _park(turn, group, attempt, member)
    # GC-2: if one member's subscription changes, the whole group has to rebalance, in any state.
    elif member.protocols != attempt.protocols:
        _park(turn, group, attempt, member)
        begin(turn, group, cause(member, "changed its subscription", request.reason))
    elif group.state is GroupState.STABLE and member.member_id == group.leader_id:
        # The leader may have noticed a change that is not in its subscription, such as a new
        # partition.
        _park(turn, group, attempt, member)
        begin(turn, group, cause(member, "rejoined as leader", request.reason))
    else:
        # The member did not receive the response to its last JoinGroup, so send the response again.
        turn.reply(attempt.parked.ticket, joined_answer(group, member), AT_ONCE)


def _park(turn: Turn, group: Group, attempt: Attempt, member: Member) -> None:
    """Park the JoinGroup until the next generation, and apply the settings in the request."""
    refuse_join(turn, group, member, RebalanceInProgress)  # its earlier JoinGroup was abandoned
    group.change_protocols(member, attempt.protocols)
    attempt.describe_to(member)
    group.park_join(member, attempt.parked)


def _take_over(turn: Turn, group: Group, attempt: Attempt, member: Member, member_id: str) -> None:
    """Let a static member return with a new member id, and fence the client with the old id."""
    # KIP-345: an instance id may be used by only one process, so the previous process is fenced if
    # its request is still waiting.
    refuse_join(turn, group, member, FencedInstanceId)
    refuse_sync(turn, member, FencedInstanceId)
    prolong_session(turn, member)
    if group.state is GroupState.STABLE:
        group.change_protocols(member, attempt.protocols)
        # KIP-345: if the group is stable and its protocol stays the same, the member gets its
        # previous assignment back, so a rolling restart causes no rebalance. Otherwise, the new
        # subscription makes the group rebalance.
        if group.choose_protocol() == group.protocol:
            _replace(turn, group, attempt, member, member_id)
            return
    state = group.state
    group.rename(member, member_id)
    _park(turn, group, attempt, member)
    if state is not GroupState.PREPARING:
        begin(turn, group, cause(member, "came back", attempt.request.reason))


def _replace(turn: Turn, group: Group, attempt: Attempt, member: Member, member_id: str) -> None:
    """Replace the member id without a rebalance. The new id is valid once it is in the log."""
    old_id = member.member_id
    group.unsynced.discard(old_id)
    record = group.record({one.member_id: one.assignment for one in group.members.values()})
    value: GroupMetadataValue = record.value  # type: ignore[assignment]
    for stored in value.members:
        if stored.member_id == old_id:
            stored.member_id = member_id
            stored.session_timeout = attempt.request.session_timeout_ms
            stored.rebalance_timeout = attempt.request.rebalance_timeout_ms
    if value.leader == old_id:
        value.leader = member_id
    turn.records.append(record)
    # KIP-814: there is no rebalance, so the leader is notified that it is the leader but must not
    # compute an assignment.
    skips_assignment = value.leader == member_id and attempt.caller.version >= _SKIP_ASSIGNMENT
    answer = JoinGroupResponse(
        generation_id=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol,
        # Before version 9, a response cannot tell the leader to skip the assignment. It therefore
        # names the old member id as the leader, and no member has that id any more.
        leader=(value.leader if skips_assignment else group.leader_id) or "",
        skip_assignment=skips_assignment,
        member_id=member_id,
    )
    if skips_assignment:
        answer.members = [
            JoinGroupResponseMember(
                member_id=one.member_id,
                group_instance_id=one.group_instance_id,
                metadata=one.subscription,
            )
            for one in value.members
        ]
    turn.reply(attempt.parked.ticket, answer)
