"""Represents a group of the classic protocol: its members, state, generation and record.

    Empty ---------join---------> PreparingRebalance --all joined, or timeout--> CompletingRebalance
      ^                             ^            |                                       |
      +----- no member is left -----|------------+                               leader's SyncGroup
                                    +--join, leave, session timeout-- Stable <-----------+

This module owns the state. The state is changed by `rebalance`, and members' requests are handled
by `joining` and `membership`.

Invariants: The group's record in the offsets topic is the record last passed to `apply`. An
assignment is sent to members only after it has been applied, and a generation without an assignment
exists only in memory. Every member is in `members`, and each of its protocols is counted exactly
once in `_support`. The generation never decreases while the group is in memory.
"""

from __future__ import annotations

from collections import Counter, deque
from enum import Enum
from typing import TYPE_CHECKING

from barnabas.coordinator.decision import StateRecord
from barnabas.coordinator.member import Member, Parked, Protocols
from barnabas.coordinator.rebalance_log import KEPT_EVENTS, RebalanceLog
from barnabas.coordinator.records import GroupMetadataKey, GroupMetadataValue, MemberMetadata
from barnabas.coordinator.timers import Timer
from barnabas.errors import CorruptData, FencedInstanceId, KafkaError, UnknownMemberId
from barnabas.protocol.consumer_protocol import (
    CONSUMER_PROTOCOL,
    ConsumerProtocolSubscription,
    decode_consumer_protocol,
)

if TYPE_CHECKING:
    from barnabas.protocol.messages.describe_groups import RebalanceEvent

NO_TIMESTAMP = -1


class GroupState(Enum):
    """The states of a group, with the names that Kafka's tools print."""

    EMPTY = "Empty"
    PREPARING = "PreparingRebalance"
    COMPLETING = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"  # reported for an unknown group


class Group:
    """A group of the classic protocol, with its state."""

    __slots__ = (
        "_joined_count",
        "_static_ids",
        "_support",
        "ended",
        "events",
        "generation",
        "group_id",
        "has_newcomer",
        "initial_until_ms",
        "is_stored",
        "known_after",
        "leader_id",
        "members",
        "pending",
        "protocol",
        "protocol_type",
        "rebalance",
        "state",
        "state_since_ms",
        "timer",
        "unsynced",
    )

    def __init__(self, group_id: str, wall_ms: int = NO_TIMESTAMP) -> None:
        self.group_id = group_id
        self.state = GroupState.EMPTY
        self.state_since_ms = wall_ms
        self.protocol_type: str | None = None
        """The protocol type, or None if no member has ever joined and there are only offsets."""
        self.protocol: str | None = None
        self.generation = 0
        self.leader_id: str | None = None
        self.members: dict[str, Member] = {}
        self.pending: dict[str, Timer] = {}
        """Member ids that were issued to clients, with timers.

        The clients have yet to join with them (KIP-394).
        """
        self.unsynced: set[str] = set()
        """Members of this generation that have yet to send SyncGroup."""
        self.timer = Timer(group_id)
        """The timer of the current phase. All members must join or sync before it expires."""
        self.initial_until_ms: int | None = None
        """The latest end of the initial delay (KIP-134), or None if there is no delay."""
        self.has_newcomer = False
        self.is_stored = False
        """Whether the offsets topic contains a record for this group."""
        self.known_after = 0
        """The high watermark at which the group's record and its assignments are replicated."""
        self.rebalance: RebalanceLog | None = None
        """The rebalance in progress.

        It is None in the Stable state and, once that state is in the log, in the Empty state.
        """
        # the completed rebalance, until its record has been applied
        self.ended: RebalanceEvent | None = None
        self.events: deque[RebalanceEvent] = deque(maxlen=KEPT_EVENTS)
        self._static_ids: dict[str, str] = {}
        self._support: Counter[str] = Counter()  # protocol -> the number of members that support it
        self._joined_count = 0

    # --- members ----------------------------------------------------------------------------

    def add(self, member: Member) -> None:
        """Add a member; the first member becomes the leader."""
        assert member.member_id not in self.members, f"{member.member_id} is already a member"
        if member.instance_id is not None:
            assert member.instance_id not in self._static_ids, "static members have one id each"
            self._static_ids[member.instance_id] = member.member_id
        if self.leader_id is None:
            self.leader_id = member.member_id
        self.members[member.member_id] = member
        self._count(member.protocols, +1)

    def remove(self, member: Member) -> None:
        """Remove a member whose requests have been answered."""
        assert member.joining is None and member.syncing is None, "it would wait indefinitely"
        del self.members[member.member_id]
        if member.instance_id is not None:
            del self._static_ids[member.instance_id]
        self._count(member.protocols, -1)
        self.unsynced.discard(member.member_id)
        if self.leader_id == member.member_id:
            # GC-2: the new leader is the remaining member that joined first.
            self.leader_id = next(iter(self.members), None)

    def static_member(self, instance_id: str | None) -> Member | None:
        """Return the member with this instance id."""
        member_id = None if instance_id is None else self._static_ids.get(instance_id)
        return None if member_id is None else self.members[member_id]

    def rename(self, member: Member, member_id: str) -> None:
        """Give a static member a new member id, without changing the order of members."""
        old_id = member.member_id
        # Rebuild the dict, because removing and adding the member would change its place in the
        # joining order.
        self.members = {
            member_id if key == old_id else key: value for key, value in self.members.items()
        }
        member.rename(member_id)
        assert member.instance_id is not None, "only a static member changes its id"
        self._static_ids[member.instance_id] = member_id
        if old_id in self.unsynced:
            self.unsynced.remove(old_id)
            self.unsynced.add(member_id)
        if self.leader_id == old_id:
            self.leader_id = member_id

    def change_protocols(self, member: Member, protocols: Protocols) -> None:
        self._count(member.protocols, -1)
        member.protocols = protocols
        self._count(protocols, +1)

    def _count(self, protocols: Protocols, change: int) -> None:
        for name, _ in protocols:
            self._support[name] += change
            if not self._support[name]:
                # clients choose the protocol names, so names that are no longer used must not
                # accumulate
                del self._support[name]

    def park_join(self, member: Member, parked: Parked) -> None:
        """Park the member's JoinGroup. Its previous JoinGroup must already have been answered."""
        assert member.joining is None, "one JoinGroup of a member waits at a time"
        member.joining = parked
        self._joined_count += 1

    def take_join(self, member: Member) -> Parked | None:
        """Remove and return the parked JoinGroup, which the caller must answer."""
        parked = member.joining
        if parked is not None:
            member.joining = None
            self._joined_count -= 1
        return parked

    @property
    def joined_count(self) -> int:
        return self._joined_count

    @property
    def have_all_joined(self) -> bool:
        """Return whether every known member is waiting for the next generation."""
        return self._joined_count == len(self.members) and not self.pending

    def check_member(self, member_id: str, instance_id: str | None) -> type[KafkaError] | None:
        """Return the error for a request that claims to come from this member, or None if valid."""
        if instance_id is not None:
            current = self.static_member(instance_id)
            if current is None:
                return UnknownMemberId
            # KIP-345: another process has since joined with this instance id.
            if current.member_id != member_id:
                return FencedInstanceId
        return None if member_id in self.members else UnknownMemberId

    def timers(self) -> list[Timer]:
        """Return all timers of the group and its members."""
        members = [member.timer for member in self.members.values()]
        return [self.timer, *self.pending.values(), *members]

    # --- protocols ----------------------------------------------------------------------

    def supports(self, protocol_type: str, protocols: Protocols) -> bool:
        """Return whether a client with these protocols can join.

        There must be at least one protocol that all members support.
        """
        # The first member determines the protocol type.
        if self.state is GroupState.EMPTY:
            return bool(protocol_type and protocols)
        size = len(self.members)
        return protocol_type == self.protocol_type and any(
            self._support[name] == size for name, _ in protocols
        )

    def choose_protocol(self) -> str:
        """Return the protocol with the most votes among those that all members support."""
        size = len(self.members)
        candidates = {name for name, count in self._support.items() if count == size}
        # Each member votes for the candidate that it prefers most; in a tie, the earliest vote
        # decides.
        votes = Counter(member.vote(candidates) for member in self.members.values())
        return max(votes, key=lambda name: votes[name])

    @property
    def rebalance_timeout_ms(self) -> int:
        """Return the longest rebalance timeout of any member."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    def is_subscribed_to(self, topic: str) -> bool:
        """Return whether any member is subscribed, or may be subscribed, to the topic."""
        # A subscription that cannot be read may include the topic, so treat the topic as in use.
        topics = self.subscribed_topics()
        return topics is None or topic in topics

    def subscribed_topics(self) -> frozenset[str] | None:
        """Return the topics to which members are subscribed, or None if they are unknown."""
        if self.protocol_type != CONSUMER_PROTOCOL:
            return None
        # No protocol has been chosen yet, so it is unknown which subscription of each member
        # applies.
        if self.members and self.protocol is None:
            return None
        topics: set[str] = set()
        for member in self.members.values():
            data = member.subscription(self.protocol or "")
            try:
                _, subscription = decode_consumer_protocol(ConsumerProtocolSubscription, data)
            except CorruptData:
                return None
            topics.update(subscription.topics)
        return frozenset(topics)

    # --- its record ----------------------------------------------------------------------

    @property
    def is_unused(self) -> bool:
        """Return whether the group has nothing in memory or in the offsets topic."""
        return self.state is GroupState.EMPTY and not self.is_stored and not self.pending

    def assignments(self) -> dict[str, bytes]:
        """Return each member's assignment.

        The keys are the members' names, which stay the same when a static member's id changes.
        """
        return {member.name: member.assignment for member in self.members.values()}

    def record(self, assignments: dict[str, bytes]) -> StateRecord:
        """Build the group's record for the offsets topic. `assignments` is keyed by member id."""
        value = GroupMetadataValue(
            protocol_type=self.protocol_type or "",
            generation=self.generation,
            protocol=self.protocol,
            leader=self.leader_id,
            current_state_timestamp=self.state_since_ms,
            members=[
                MemberMetadata(
                    member_id=member.member_id,
                    group_instance_id=member.instance_id,
                    client_id=member.client_id,
                    client_host=member.client_host,
                    rebalance_timeout=member.rebalance_timeout_ms,
                    session_timeout=member.session_timeout_ms,
                    subscription=member.subscription(self.protocol or ""),
                    assignment=assignments.get(member.member_id, b""),
                )
                for member in self.members.values()
            ],
        )
        return StateRecord(GroupMetadataKey(group=self.group_id), value)

    def apply(self, value: GroupMetadataValue) -> None:
        """Apply a newly appended or replayed record of the group, and update the known members."""
        # Compare by name, because a static member may have returned with a new member id (KIP-345).
        known = {member.name: member for member in self.members.values()}
        self.members, self._static_ids, self._support = {}, {}, Counter()
        self._joined_count = 0
        for stored in value.members:
            name = (
                stored.member_id if stored.group_instance_id is None else stored.group_instance_id
            )
            member = known.pop(name, None)
            self.add(self._update_member(member, stored, value.protocol or ""))
        assert not any(gone.joining or gone.syncing for gone in known.values()), (
            "their requests would wait indefinitely"
        )
        self._joined_count = sum(member.joining is not None for member in self.members.values())
        self.protocol_type = value.protocol_type or None
        self.protocol = value.protocol
        self.generation = value.generation
        self.leader_id = value.leader
        # Only these two states are ever written, because a rebalance exists only in memory.
        self.state = GroupState.STABLE if self.members else GroupState.EMPTY
        self.state_since_ms = value.current_state_timestamp
        self.is_stored = True
        # The rebalance ends only when this record is in the log.
        if self.ended is not None:
            self.events.append(self.ended)
            self.ended = self.rebalance = None

    def _update_member(
        self, member: Member | None, stored: MemberMetadata, protocol: str
    ) -> Member:
        """Return the member, updated from its record, which contains only the chosen protocol."""
        if member is None:
            member = Member.of_record(self.group_id, protocol, stored)
        # The member's protocols have changed since the record was read, so the record takes
        # precedence.
        elif member.subscription(protocol) != stored.subscription:
            member.protocols = ((protocol, bytes(stored.subscription)),)
        if member.member_id != stored.member_id:
            member.rename(stored.member_id)
        member.session_timeout_ms = stored.session_timeout
        # Records from Kafka before 0.10.1 have no rebalance timeout; the session timeout was used
        # instead.
        member.rebalance_timeout_ms = stored.rebalance_timeout or stored.session_timeout
        member.assignment = bytes(stored.assignment)
        return member
