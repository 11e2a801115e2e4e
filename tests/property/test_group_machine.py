"""The machine of groups under any order of events, with a crash and a replay after any of them.

Clients do what they like, in any version: join, sync, heartbeat, leave, vanish; appends are refused
now and then. The machine is held against a model of the answers that each client received.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from barnabas.coordinator.decision import Decision, Now, StateRecord
from barnabas.coordinator.group import Group, GroupState
from barnabas.coordinator.groups import Groups
from barnabas.coordinator.joining import Caller
from barnabas.coordinator.records import GroupMetadataKey
from barnabas.coordinator.settings import GroupConfig
from barnabas.coordinator.timers import NEVER
from barnabas.errors import MemberIdRequired
from barnabas.protocol.messages.heartbeat import HeartbeatRequest
from barnabas.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from barnabas.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from barnabas.protocol.messages.offset_commit import (
    OffsetCommitPartition,
    OffsetCommitRequest,
    OffsetCommitTopic,
)
from barnabas.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tests.kit.effort import examples

GROUP = "g"
SESSION_MS, REBALANCE_MS = 10_000, 30_000
PROTOCOLS = [("range",), ("range", "sticky"), ("sticky", "range"), ("sticky",)]

clients = st.integers(0, 5)
"""0 and 1 are static members "s0" and "s1"; the others are dynamic."""


class Client:
    """What a client remembers."""

    def __init__(self, number: int) -> None:
        self.instance_id = f"s{number}" if number < 2 else None
        self.client_id = f"c{number}"
        self.member_id = ""
        self.generation = -1
        self.to_assign: list[str] = []  # if it leads: the members of its generation
        self.next = "join"  # what a good client would do now


class GroupMachine(RuleBasedStateMachine):
    """One group, six clients, and a log."""

    def __init__(self) -> None:
        super().__init__()
        self.config = GroupConfig(initial_rebalance_delay_ms=3000, max_size=4)
        self.now_ms = 1_000_000
        self.ahead_ms = 0
        self.log: list[StateRecord] = []
        self.clients = [Client(number) for number in range(6)]
        self.ids = 0
        self.tickets = 0
        self.refuses = False
        self.begin()

    @property
    def now(self) -> Now:
        return Now(self.now_ms, self.now_ms + self.ahead_ms)

    def begin(self) -> None:
        """A machine that knows what the log says, and no client that waits."""
        self.machine = replayed(self.log, self.config)
        for client in self.clients:
            client.next = "join"
        self.owed: dict[int, tuple[str, Client]] = {}
        self.watched: Group | None = None
        self.generation = -1
        self.leaders: dict[int, str] = {}
        self.is_behind = False  # a record of the group was refused: memory is ahead of the log
        self.carry_out(self.machine.on_loaded(self.now))

    # --- what clients do -------------------------------------------------------------------------

    @rule(
        number=clients,
        version=st.sampled_from([0, 3, 5, 9]),
        protocols=st.sampled_from(PROTOCOLS),
        subscription=st.binary(max_size=1),
        forgets=st.booleans(),
    )
    def join(
        self,
        number: int,
        version: int,
        protocols: tuple[str, ...],
        subscription: bytes,
        forgets: bool,
    ) -> None:
        client = self.clients[number]
        if forgets:  # it has been restarted; what its earlier life is owed comes to nobody
            before = copy(client)
            self.owed = {
                ticket: (kind, before if owner is client else owner)
                for ticket, (kind, owner) in self.owed.items()
            }
            client.member_id = ""
        if client.instance_id is not None:
            version = max(version, 5)
        request = JoinGroupRequest(
            group_id=GROUP,
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=REBALANCE_MS if version else -1,
            member_id=client.member_id,
            group_instance_id=client.instance_id,
            protocol_type="consumer",
            protocols=[
                JoinGroupRequestProtocol(name=name, metadata=subscription) for name in protocols
            ],
        )
        self.ids += 1
        caller = Caller(client.client_id, "/h", f"{self.ids}", version)
        ticket = self.ticket("join", client)
        self.carry_out(self.machine.join(ticket, request, caller, self.now))

    @rule(rounds=st.integers(1, 8), least=clients)
    def go_on(self, rounds: int, least: int) -> None:
        """These clients do what good clients do."""
        for _ in range(rounds):
            for number, client in enumerate(self.clients):
                if number < least or any(client is owner for _, owner in self.owed.values()):
                    continue
                if client.next == "join":
                    self.join(number, 9, ("range", "sticky"), b"", False)
                elif client.next == "sync":
                    self.sync(number, False, False)
                else:
                    self.heartbeat(number)
            self.time_passes(3_000)

    @precondition(lambda self: self.machine.groups)
    @rule(number=clients, is_stale=st.booleans(), leaves_out=st.booleans())
    def sync(self, number: int, is_stale: bool, leaves_out: bool) -> None:
        client = self.clients[number]
        generation = client.generation - is_stale
        assigned = [*client.to_assign[leaves_out:], "stranger"]
        request = SyncGroupRequest(
            group_id=GROUP,
            generation_id=generation,
            member_id=client.member_id,
            group_instance_id=client.instance_id,
            assignments=[
                SyncGroupRequestAssignment(
                    member_id=one, assignment=f"{generation} {name_of(one)}".encode()
                )
                for one in assigned
                if client.to_assign
            ],
        )
        ticket = self.ticket("sync", client)
        self.carry_out(self.machine.sync(ticket, request, self.now))

    @precondition(lambda self: self.machine.groups)
    @rule(number=clients)
    def heartbeat(self, number: int) -> None:
        client = self.clients[number]
        request = HeartbeatRequest(
            group_id=GROUP,
            generation_id=client.generation,
            member_id=client.member_id,
            group_instance_id=client.instance_id,
        )
        ticket = self.ticket("heartbeat", client)
        self.carry_out(self.machine.heartbeat(ticket, request, self.now_ms))

    @precondition(lambda self: self.machine.groups)
    @rule(first=clients, second=clients, by_instance=st.booleans())
    def leave(self, first: int, second: int, by_instance: bool) -> None:
        leaving = []
        for number in dict.fromkeys((first, second)):
            client = self.clients[number]
            member_id = "" if by_instance and client.instance_id else client.member_id
            identity = MemberIdentity(member_id=member_id, group_instance_id=client.instance_id)
            leaving.append(identity)
        request = LeaveGroupRequest(group_id=GROUP, members=leaving)
        ticket = self.ticket("leave", self.clients[first])
        self.carry_out(self.machine.leave(ticket, request, 5, self.now))

    @rule(number=clients, offset=st.integers(0, 9), is_member=st.booleans())
    def commit(self, number: int, offset: int, is_member: bool) -> None:
        client = self.clients[number]
        partition = OffsetCommitPartition(partition_index=0, committed_offset=offset)
        request = OffsetCommitRequest(
            group_id=GROUP,
            topics=[OffsetCommitTopic(name="t", partitions=[partition])],
        )
        if is_member:
            request.generation_id_or_member_epoch = client.generation
            request.member_id = client.member_id
            request.group_instance_id = client.instance_id
        ticket = self.ticket("commit", client)
        self.carry_out(self.machine.commit(ticket, request, self.now))

    @precondition(lambda self: self.machine.groups)
    @rule()
    def delete(self) -> None:
        ticket = self.ticket("delete", self.clients[0])
        self.carry_out(self.machine.delete(ticket, [GROUP], self.now))

    # --- what else happens -----------------------------------------------------------------------

    @rule(
        passed_ms=st.sampled_from(
            [1, 2_999, 3_000, SESSION_MS - 1, SESSION_MS, REBALANCE_MS, 300_000, 10**10]
        )
    )
    def time_passes(self, passed_ms: int) -> None:
        until_ms = self.now_ms + passed_ms
        for _ in range(1000):
            deadline_ms = self.machine.deadline_ms()
            if deadline_ms is None or deadline_ms > until_ms:
                break
            self.now_ms = max(self.now_ms, deadline_ms)
            for decision in self.machine.expire(self.now):
                self.carry_out(decision)
        self.now_ms = until_ms

    @rule(ahead_ms=st.sampled_from([0, -900_000, 300_000, 10**9]))
    def the_wall_clock_is_set(self, ahead_ms: int) -> None:
        """ST-6: which ends no session."""
        self.ahead_ms = ahead_ms

    @rule(max_size=st.integers(1, 6))
    def configure(self, max_size: int) -> None:
        self.config = self.machine.config = self.config._replace(max_size=max_size)

    @rule()
    def refuse_the_next_append(self) -> None:
        self.refuses = True

    @precondition(lambda self: self.log)
    @rule()
    def crash(self) -> None:
        self.begin()

    # --- the shell -------------------------------------------------------------------------------

    def ticket(self, kind: str, client: Client) -> int:
        self.tickets += 1
        self.owed[self.tickets] = (kind, client)
        return self.tickets

    def carry_out(self, decision: Decision) -> None:
        self.watch()
        if decision.records and self.refuses:
            self.refuses = False
            self.is_behind |= any(isinstance(key, GroupMetadataKey) for key, _ in decision.records)
            for ticket, *_ in decision.replies:
                _, client = self.owed.pop(ticket)  # each once, and none that was not asked
                client.next = "join"
            return
        for record in decision.records:
            self.log.append(record)
            self.machine.apply(record, len(self.log) - 1)
            self.is_behind &= not isinstance(record.key, GroupMetadataKey)
        for ticket, message, _ in decision.replies:
            kind, client = self.owed.pop(ticket)
            getattr(self, f"{kind}_answered")(client, message)
        if decision.records:
            again = replayed(self.log, self.config)
            assert again.offsets.groups == self.machine.offsets.groups
            was, now = {} if self.is_behind else settled(self.machine), settled(again)
            assert {key: now[key] for key in was} == was, "replay gives what was applied"

    def watch(self) -> None:
        """A group that has been forgotten may come again, with generations from 1 on."""
        group = self.machine.groups.get(GROUP)
        if group is not self.watched:
            self.watched, self.generation, self.leaders = group, -1, {}

    def join_answered(self, client: Client, answer: Any) -> None:
        client.next = "join"
        if answer.error_code == MemberIdRequired.code:
            client.member_id = answer.member_id
        elif answer.error_code:
            client.member_id = ""
        if answer.error_code:
            return
        client.next = "sync"
        client.member_id = answer.member_id
        client.generation = answer.generation_id
        client.to_assign = []
        if answer.leader == answer.member_id and not answer.skip_assignment:
            client.to_assign = [member.member_id for member in answer.members]
            assert client.member_id in client.to_assign
            known = self.leaders.setdefault(answer.generation_id, name_of(answer.leader))
            assert known == name_of(answer.leader), "one leader a generation"

    def sync_answered(self, client: Client, answer: Any) -> None:
        client.next = "join" if answer.error_code else "heartbeat"
        if answer.error_code == 0 and answer.assignment:
            # It says for whom the leader of the generation made it.
            generation, name = answer.assignment.decode().split(" ")
            assert name == (client.instance_id or client.member_id)
            assert int(generation) == self.group.generation
            assert client.member_id in self.group.members

    def heartbeat_answered(self, client: Client, answer: Any) -> None:
        if answer.error_code:
            client.next = "join"
        else:
            assert client.generation == self.group.generation
            assert client.member_id in self.group.members

    def leave_answered(self, client: Client, answer: Any) -> None:
        for left in answer.members:
            if left.error_code == 0 and GROUP in self.machine.groups and left.member_id:
                assert left.member_id not in self.group.members

    def commit_answered(self, client: Client, answer: Any) -> None:
        assert len(answer.topics[0].partitions) == 1

    def delete_answered(self, client: Client, answer: Any) -> None:
        if answer.results[0].error_code == 0:
            assert GROUP not in self.machine.groups
            assert GROUP not in self.machine.offsets.groups

    # --- what is always true ---------------------------------------------------------------------

    @property
    def group(self) -> Group:
        return self.machine.groups[GROUP]

    @invariant()
    def the_generation_never_falls(self) -> None:
        self.watch()
        if self.watched is not None:
            assert self.watched.generation >= self.generation
            self.generation = self.watched.generation

    @invariant()
    def the_group_is_sound(self) -> None:
        group = self.machine.groups.get(GROUP)
        if group is None:
            return
        members = group.members
        assert all(key == member.member_id for key, member in members.items())
        assert (group.leader_id in members) == bool(members)
        assert group.joined_count == sum(member.joining is not None for member in members.values())
        assert (group.state is GroupState.EMPTY) <= (not members)
        assert group.unsynced <= members.keys() and not members.keys() & group.pending.keys()
        parked = [one for each in members.values() for one in (each.joining, each.syncing) if one]
        assert sorted(self.owed) == sorted(one.ticket for one in parked), "no client is forgotten"
        if group.state is GroupState.STABLE:
            assert not parked

    @invariant()
    def members_that_may_vanish_are_watched(self) -> None:
        group = self.machine.groups.get(GROUP)
        if group is None:
            return
        for member in group.members.values():
            if member.is_new or not (member.joining or member.syncing):
                assert member.timer.queued_ms <= member.timer.deadline_ms < NEVER
        if group.state is GroupState.PREPARING or group.unsynced:
            assert group.timer.queued_ms <= group.timer.deadline_ms < NEVER
        assert all(timer.queued_ms < NEVER for timer in group.pending.values())

    def teardown(self) -> None:
        """Good clients come to agree; if they all go silent, everybody is answered."""
        self.refuses = False
        self.configure(6)
        self.go_on(40, 0)
        assert self.group.state is GroupState.STABLE and len(self.group.members) == 6
        assert {client.next for client in self.clients} == {"heartbeat"}
        for _ in range(5):
            self.time_passes(2 * 300_000)
        assert not self.owed
        assert all(group.state is GroupState.EMPTY for group in self.machine.groups.values())


def name_of(member_id: str) -> str:
    """Static members keep their instance id as their name; "s0-17" is "s0"."""
    return member_id.partition("-")[0] if member_id.startswith("s") else member_id


def replayed(log: list[StateRecord], config: GroupConfig) -> Groups:
    machine = Groups(0, 0, config)
    for offset, record in enumerate(log):
        machine.apply(record, offset)
    return machine


def settled(machine: Groups) -> dict[str, StateRecord]:
    """Groups in a state that the log knows: as the record that would be written of them."""
    return {group.group_id: as_record(group) for group in _settled_groups(machine)}


def as_record(group: Group) -> StateRecord:
    return group.record({one.member_id: one.assignment for one in group.members.values()})


def _settled_groups(machine: Groups) -> Iterator[Group]:
    for group in machine.groups.values():
        if group.is_stored and group.state in (GroupState.EMPTY, GroupState.STABLE):
            yield group


GroupMachine.TestCase.settings = settings(
    max_examples=examples(60), stateful_step_count=40, deadline=None
)
TestGroupMachine = GroupMachine.TestCase
