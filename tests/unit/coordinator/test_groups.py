"""The machine of groups: offsets that outlive their use, limits of a step, and what is refused."""

from __future__ import annotations

import time

import pytest

from barnabas.coordinator.decision import Decision, Now, StateRecord
from barnabas.coordinator.groups import Caller, Groups
from barnabas.coordinator.records import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
)
from barnabas.coordinator.settings import GroupConfig
from barnabas.errors import (
    FencedInstanceId,
    GroupIdNotFound,
    GroupSubscribedToTopic,
    InvalidGroupId,
    NonEmptyGroup,
)
from barnabas.protocol.consumer_protocol import (
    ConsumerProtocolSubscription,
    encode_consumer_protocol,
)
from barnabas.protocol.messages.heartbeat import HeartbeatRequest
from barnabas.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from barnabas.protocol.messages.offset_delete import (
    OffsetDeletePartition,
    OffsetDeleteRequest,
    OffsetDeleteTopic,
)
from barnabas.protocol.messages.sync_group import SyncGroupRequest

DAY_MS = 86_400_000
CONFIG = GroupConfig(initial_rebalance_delay_ms=0, offsets_retention_ms=7 * DAY_MS)


class Log:
    """Carries out what a machine decides, as the shell does."""

    def __init__(self, config: GroupConfig = CONFIG) -> None:
        self.machine = Groups(0, 0, config)
        self.machine.on_loaded(Now(0, 0))
        self.end = 0

    def write(self, key: object, value: object) -> None:
        self.machine.apply(StateRecord(key, value), self.end)  # type: ignore[arg-type]
        self.end += 1

    def carry_out(self, decision: Decision) -> None:
        for key, value in decision.records:
            self.write(key, value)

    def offset(self, group: str, topic: str, partition: int = 0, at_ms: int = 0) -> None:
        key = OffsetCommitKey(group=group, topic=topic, partition=partition)
        self.write(key, OffsetCommitValue(offset=1, commit_timestamp=at_ms))

    def group(
        self, name: str, *topics: str, empty_since_ms: int = 0, kind: str = "consumer"
    ) -> None:
        """Stable with one member if topics are given, else empty."""
        data = encode_consumer_protocol(ConsumerProtocolSubscription(topics=list(topics)))
        member = MemberMetadata(member_id="m", session_timeout=10_000, subscription=data)
        value = GroupMetadataValue(
            protocol_type=kind,
            generation=1,
            protocol="range" if topics else None,
            leader="m" if topics else None,
            current_state_timestamp=empty_since_ms,
            members=[member] if topics else [],
        )
        self.write(GroupMetadataKey(group=name), value)

    def run_until(self, now_ms: int) -> list[StateRecord]:
        """Everything that is due by then; what was written."""
        written: list[StateRecord] = []
        for _ in range(100_000):
            deadline_ms = self.machine.deadline_ms()
            if deadline_ms is None or deadline_ms > now_ms:
                return written
            for decision in self.machine.expire(Now(now_ms, now_ms)):
                self.carry_out(decision)
                written += decision.records
        raise AssertionError("it never comes to an end")

    def places(self, group: str) -> set[tuple[str, int]]:
        found = self.machine.offsets.groups.get(group)
        return set() if found is None else set(found.committed)


def test_offsets_of_a_group_that_is_empty_for_long() -> None:
    """GC-3, KIP-211: what counts is when it became empty, not when it was committed."""
    log = Log()
    log.group("g", empty_since_ms=3 * DAY_MS)
    log.offset("g", "t")
    log.run_until(9 * DAY_MS)
    assert log.places("g") == {("t", 0)}
    log.run_until(10 * DAY_MS)
    assert log.places("g") == set() and "g" not in log.machine.groups


def test_no_offset_expires_while_its_age_is_unknown() -> None:
    """ST-6, GC-3: those of deleted topics go all the same."""
    log = Log()
    log.offset("g", "t")
    log.offset("g", "gone")
    now = Now(DAY_MS, 30 * DAY_MS)
    log.machine.topics_deleted(["gone"])
    for _ in range(3):
        for decision in log.machine.expire(now, may_forget=False):
            log.carry_out(decision)
    assert log.places("g") == {("t", 0)}
    log.run_until(30 * DAY_MS)
    assert not log.places("g")


def test_sessions_and_the_states_of_groups_have_different_clocks() -> None:
    """ST-6, GC-2: a session is over by the monotonic clock; when it became empty is wall time."""
    log = Log()
    log.group("g", "t")
    log.machine.on_loaded(Now(1_000, 30 * DAY_MS))
    for now in (Now(10_999, 60 * DAY_MS), Now(11_000, DAY_MS)):
        for decision in log.machine.expire(now, may_forget=False):
            log.carry_out(decision)
        assert bool(log.machine.groups["g"].members) == (now.monotonic_ms < 11_000)
    assert log.machine.groups["g"].state_since_ms == DAY_MS


def test_offsets_of_old_records_without_a_time() -> None:
    log = Log()
    log.group("g", empty_since_ms=-1)
    log.offset("g", "t", at_ms=2 * DAY_MS)
    log.run_until(8 * DAY_MS)
    assert log.places("g")
    log.run_until(9 * DAY_MS)
    assert not log.places("g")


def test_offsets_of_topics_that_members_no_longer_read() -> None:
    """GC-3: the group lives, and so do the offsets of what it reads."""
    log = Log()
    log.group("g", "t")
    log.offset("g", "t")
    log.offset("g", "u")
    keep_alive(log, 8 * DAY_MS)
    assert log.places("g") == {("t", 0)}


def keep_alive(log: Log, until_ms: int) -> None:
    """The member heartbeats with a patience that tests have not."""
    member = log.machine.groups["g"].members["m"]
    member.session_timeout_ms = until_ms
    request = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
    log.machine.heartbeat(0, request, DAY_MS)
    log.run_until(until_ms)


def test_offsets_of_other_members_than_consumers_are_kept() -> None:
    log = Log()
    log.group("g", "t", kind="connect")
    log.offset("g", "t")
    keep_alive(log, 8 * DAY_MS)
    assert log.places("g") == {("t", 0)}


def test_offsets_without_members() -> None:
    """A consumer that assigns itself: a week after each commit."""
    log = Log()
    log.offset("g", "t", at_ms=0)
    log.offset("g", "u", at_ms=DAY_MS)
    log.run_until(7 * DAY_MS)
    assert log.places("g") == {("u", 0)}
    written = log.run_until(8 * DAY_MS)
    assert log.places("g") == set() and len(written) == 1


def test_deleted_topics() -> None:
    """What was committed of them is forgotten, and a group that had nothing else with it."""
    log = Log()
    log.group("last")
    log.group("live", "t")
    for group in ("last", "live", "empty"):
        log.offset(group, "gone")
    log.offset("empty", "t")
    log.carry_out(log.machine.topics_deleted(["gone", "never"]))
    written = log.run_until(1)
    assert [(key, value) for key, value in written if value is not None] == []
    assert {group: log.places(group) for group in ("last", "live", "empty")} == {
        "last": set(),
        "live": set(),
        "empty": {("t", 0)},
    }
    assert list(log.machine.groups) == ["live"]


def test_a_step_is_small_however_much_there_is() -> None:
    log = Log()
    for n in range(3_000):
        log.offset("much", "t", n)
        log.offset(f"g{n}", "t")
    decisions = []
    while log.machine.deadline_ms() is not None and log.machine.deadline_ms() <= 8 * DAY_MS:
        step = log.machine.expire(Now(8 * DAY_MS, 8 * DAY_MS))
        assert sum(len(each.records) for each in step) <= 3_200
        for each in step:
            assert len(each.records) <= 1_000
            log.carry_out(each)
        decisions += step
    assert sum(len(each.records) for each in decisions) == 6_000
    assert log.machine.offsets.groups == {}


def delete_offsets(log: Log, group: str, *topics: str) -> Decision:
    wanted = [
        OffsetDeleteTopic(name=topic, partitions=[OffsetDeletePartition(partition_index=0)])
        for topic in topics
    ]
    request = OffsetDeleteRequest(group_id=group, topics=wanted)
    decision = log.machine.delete_offsets(1, request, 0)
    log.carry_out(decision)
    return decision


def test_deletion_of_offsets() -> None:
    """KIP-496"""
    log = Log()
    log.group("g", "t")
    log.group("connect", "t", kind="connect")
    for group in ("g", "connect", "empty"):
        log.offset(group, "t")
        log.offset(group, "u")
    (reply,) = delete_offsets(log, "g", "t", "u").replies
    codes = [topic.partitions[0].error_code for topic in reply.message.topics]
    assert codes == [GroupSubscribedToTopic.code, 0] and log.places("g") == {("t", 0)}
    assert code_of(delete_offsets(log, "connect", "u")) == NonEmptyGroup.code
    assert code_of(delete_offsets(log, "missing", "u")) == GroupIdNotFound.code
    assert code_of(delete_offsets(log, "", "u")) == InvalidGroupId.code
    assert code_of(delete_offsets(log, "empty", "t", "u")) == 0
    assert "empty" not in log.machine.offsets.groups


def test_an_empty_group_goes_with_its_last_offset() -> None:
    log = Log()
    log.group("g")
    log.offset("g", "t")
    assert len(delete_offsets(log, "g", "t").records) == 2
    assert "g" not in log.machine.groups


def code_of(decision: Decision) -> int:
    return int(decision.replies[0].message.error_code)


def test_an_id_that_was_handed_out_leaves_nothing() -> None:
    """A client that never comes back is forgotten with its session timeout."""
    log = Log()
    request = JoinGroupRequest(
        group_id="g",
        session_timeout_ms=10_000,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range")],
    )
    log.machine.join(1, request, Caller("c", "/h", "1", 9), Now(0, 0))
    assert list(log.machine.groups) == ["g"]
    log.run_until(9_999)
    assert list(log.machine.groups) == ["g"]
    log.run_until(10_000)
    assert log.machine.groups == {}


@pytest.mark.parametrize("size", [100, 1_000])
def test_a_large_group_settles_at_once(size: int) -> None:
    """A join of many members costs each of them the same: no step looks at all of them but two."""
    log = Log()
    machine = log.machine
    request = JoinGroupRequest(
        group_id="g",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"x" * 50)],
    )
    begun = time.thread_time()
    for n in range(size):
        assert machine.join(n, request, Caller("c", "/h", str(n), 3), Now(0, 0)).replies == ()
    (decision,) = (each for each in machine.expire(Now(0, 0)))
    assert len(decision.replies) == size
    for ticket, answer, _ in reversed(decision.replies):
        sync = SyncGroupRequest(group_id="g", generation_id=1, member_id=answer.member_id)
        synced = machine.sync(ticket, sync, Now(0, 0))
        log.carry_out(synced)
    assert len(synced.replies) == size
    assert time.thread_time() - begun < 2.0


def join_as(machine: Groups, instance_id: str, ticket: int, now_ms: int = 0) -> Decision:
    """JoinGroup of a static member that has no member id."""
    request = JoinGroupRequest(
        group_id="g",
        session_timeout_ms=30_000,
        rebalance_timeout_ms=10_000,
        group_instance_id=instance_id,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range")],
    )
    return machine.join(ticket, request, Caller("c", "/h", str(ticket), 9), Now(now_ms, now_ms))


def test_a_static_member_that_is_replaced_while_its_sync_group_waits_is_fenced() -> None:
    """GC-2: an answer that has it join again would let it and its successor fence each other."""
    log = Log()
    machine = log.machine
    join_as(machine, "a", 1)
    join_as(machine, "b", 2)
    (joined,) = machine.expire(Now(0, 0))
    ids = {ticket: answer.member_id for ticket, answer, _ in joined.replies}
    waits = 2 if ids[1] == machine.groups["g"].leader_id else 1
    sync = SyncGroupRequest(group_id="g", generation_id=1, member_id=ids[waits])
    assert machine.sync(3, sync, Now(0, 0)).replies == ()
    replaced = {one.ticket: one.message for one in join_as(machine, "ab"[waits - 1], 4).replies}
    assert replaced[3].error_code == FencedInstanceId.code  # type: ignore[attr-defined]


def test_a_static_member_that_is_replaced_before_its_sync_group_holds_up_no_other() -> None:
    """GC-3: its old id is waited for no longer when the time for SyncGroup is over, and the group
    still gets later deadlines."""
    log = Log()
    machine = log.machine
    join_as(machine, "a", 1)
    join_as(machine, "b", 2)
    (joined,) = machine.expire(Now(0, 0))
    ids = {ticket: answer.member_id for ticket, answer, _ in joined.replies}
    leader = machine.groups["g"].leader_id
    late = 2 if ids[1] == leader else 1
    sync = SyncGroupRequest(group_id="g", generation_id=1, member_id=leader)
    log.carry_out(machine.sync(3, sync, Now(0, 0)))
    replaced = join_as(machine, "ab"[late - 1], 4, 5_000)
    log.carry_out(replaced)
    (answer,) = (answer for ticket, answer, _ in replaced.replies if ticket == 4)
    assert answer.error_code == 0 and answer.member_id != ids[late]
    assert log.run_until(20_000) == [], "both are still in their sessions"
    assert set(machine.groups["g"].members) == {leader, answer.member_id}
    log.run_until(40_000)
    assert machine.groups["g"].members == {}
