"""GC-3: committed offsets under any order of events, with a crash possible after each.

What holds at every step: reading the log again gives the state that was there, also after the log
has been compacted; and that state is what the log says by the plainest reading of it.
"""

from __future__ import annotations

from typing import NamedTuple

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from barnabas.coordinator.decision import NO_PRODUCER_ID, Decision, StateRecord
from barnabas.coordinator.offsets import Committed, GroupOffsets, Offsets
from barnabas.coordinator.records import (
    KeyValue,
    OffsetCommitKey,
    OffsetCommitValue,
    decode_group_record,
    encode_record,
)
from barnabas.errors import UnstableOffsetCommit
from barnabas.protocol.messages.offset_commit import (
    OffsetCommitPartition,
    OffsetCommitRequest,
    OffsetCommitTopic,
)
from barnabas.protocol.messages.offset_delete import (
    OffsetDeletePartition,
    OffsetDeleteRequest,
    OffsetDeleteTopic,
)
from barnabas.protocol.messages.offset_fetch import OffsetFetchGroup, OffsetFetchGroupResponse
from barnabas.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitPartition,
    TxnOffsetCommitRequest,
    TxnOffsetCommitTopic,
)
from tests.kit.effort import examples

# Few names, one of them nearly always: what is interesting happens where events meet.
GROUPS = st.sampled_from(["g", "g", "g", "h"])
TOPICS = st.sampled_from(["t", "t", "u"])
PARTITIONS = st.lists(st.integers(0, 1), min_size=1, max_size=3)  # the same one twice, too
PRODUCERS = st.sampled_from([1, 1, 2])
RETENTION_MS = 100
Place = tuple[str, int]


class Entry(NamedTuple):
    """What the log holds at one offset: a record, or the marker that ends a transaction."""

    offset: int
    record: KeyValue | None
    producer_id: int
    is_commit: bool = False


def replayed(log: list[Entry]) -> Offsets:
    """The state of a coordinator that has just taken the partition."""
    offsets = Offsets()
    for entry in log:
        if entry.record is None:
            offsets.end_transaction(entry.producer_id, entry.is_commit)
        else:
            key, value = decoded(entry.record)
            offsets.apply(key, value, entry.offset, entry.producer_id)
    return offsets


def decoded(record: KeyValue) -> tuple[OffsetCommitKey, OffsetCommitValue | None]:
    found = decode_group_record(*record)
    assert isinstance(found.key, OffsetCommitKey)
    assert found.value is None or isinstance(found.value, OffsetCommitValue)
    return found.key, found.value


def outcomes(log: list[Entry]) -> dict[int, bool | None]:
    """For each record, by offset: whether its transaction was committed; None: it is open."""
    found: dict[int, bool | None] = {}
    open_: dict[int, list[int]] = {}  # by producer
    for entry in log:
        if entry.record is None:
            found.update(dict.fromkeys(open_.pop(entry.producer_id, ()), entry.is_commit))
        elif entry.producer_id == NO_PRODUCER_ID:
            found[entry.offset] = True
        else:
            found[entry.offset] = None
            open_.setdefault(entry.producer_id, []).append(entry.offset)
    return found


def compacted(log: list[Entry], *, with_tombstones: bool) -> list[Entry]:
    """As the cleaner leaves it: below the first open transaction, the last record of each key.

    Records of aborted transactions go first of all. Markers stay; that they go when nothing of
    their transaction is left, changes nothing.
    """
    is_committed = outcomes(log)
    open_ = [offset for offset, outcome in is_committed.items() if outcome is None]
    end = min(open_, default=len(log))
    last = {
        entry.record.key: entry.offset
        for entry in log
        if entry.record is not None and entry.offset < end and is_committed[entry.offset]
    }
    return [
        entry
        for entry in log
        if entry.record is None
        or entry.offset >= end
        or (
            last.get(entry.record.key) == entry.offset
            and (with_tombstones or entry.record.value is not None)
        )
    ]


class Shard(RuleBasedStateMachine):
    """Two groups that share topics, two transactional producers, and a clock."""

    def __init__(self) -> None:
        super().__init__()
        self.offsets = Offsets()
        self.log: list[Entry] = []
        self.now_ms = 1_000_000
        self.high_watermark = 0

    def carry_out(self, decision: Decision) -> None:
        producer_id = NO_PRODUCER_ID if decision.batch is None else decision.batch.producer_id
        for key, value in decision.records:
            assert isinstance(key, OffsetCommitKey)
            assert value is None or isinstance(value, OffsetCommitValue)
            offset = len(self.log)
            self.log.append(Entry(offset, encode_record(key, value), producer_id))
            self.offsets.apply(key, value, offset, producer_id, self.high_watermark)

    # --- what clients do -------------------------------------------------------------------------

    @rule(
        group=GROUPS,
        topic=TOPICS,
        numbers=PARTITIONS,
        retention_ms=st.sampled_from([-1, -1, 30]),
        is_refused=st.sampled_from([False, False, False, True]),
    )
    def commit(
        self, group: str, topic: str, numbers: list[int], retention_ms: int, is_refused: bool
    ) -> None:
        request = OffsetCommitRequest(
            group_id=group,
            retention_time_ms=retention_ms,
            topics=[
                OffsetCommitTopic(
                    name=topic,
                    partitions=[
                        OffsetCommitPartition(
                            partition_index=number, committed_offset=len(self.log)
                        )
                        for number in numbers
                    ],
                )
            ],
        )
        decision = self.offsets.commit(0, request, self.now_ms, 10)
        if not is_refused:  # else the log could not take it, and nothing has happened
            self.carry_out(decision)

    @rule(
        group=GROUPS,
        topic=TOPICS,
        numbers=PARTITIONS,
        producer_id=PRODUCERS,
        plain=st.sampled_from(["none", "before", "after", "after"]),
    )
    def commit_transactional(
        self, group: str, topic: str, numbers: list[int], producer_id: int, plain: str
    ) -> None:
        """Perhaps with a plain commit that crosses it."""
        if plain == "before":
            self.commit(group, topic, numbers, -1, False)
        request = TxnOffsetCommitRequest(
            transactional_id="tx",
            group_id=group,
            producer_id=producer_id,
            topics=[
                TxnOffsetCommitTopic(
                    name=topic,
                    partitions=[
                        TxnOffsetCommitPartition(
                            partition_index=number, committed_offset=len(self.log)
                        )
                        for number in numbers
                    ],
                )
            ],
        )
        self.carry_out(self.offsets.commit_transactional(0, request, self.now_ms, 10))
        if plain == "after":
            self.commit(group, topic, numbers, -1, False)

    @rule(producer_id=PRODUCERS, is_commit=st.sampled_from([True, True, False]))
    def end_transaction(self, producer_id: int, is_commit: bool) -> None:
        """Also where the producer has none: markers are written again after a crash."""
        self.log.append(Entry(len(self.log), None, producer_id, is_commit))
        self.high_watermark = len(self.log)  # a marker counts when it is replicated
        self.offsets.end_transaction(producer_id, is_commit)

    @rule(group=GROUPS, topic=TOPICS, numbers=PARTITIONS, subscribed=st.sampled_from(["", "u"]))
    def delete(self, group: str, topic: str, numbers: list[int], subscribed: str) -> None:
        partitions = [OffsetDeletePartition(partition_index=number) for number in numbers]
        request = OffsetDeleteRequest(
            group_id=group, topics=[OffsetDeleteTopic(name=topic, partitions=partitions)]
        )
        kept = self.committed(group)
        self.carry_out(self.offsets.delete(0, request, {subscribed}))
        gone = {(topic, number) for number in numbers} if topic != subscribed else set()
        assert self.committed(group) == {one: kept[one] for one in kept if one not in gone}
        left = self.offsets.groups.get(group, GroupOffsets({}, {}))
        assert gone.isdisjoint(left.places()), "what is pending is forgotten, too"

    # --- what the broker does --------------------------------------------------------------------

    @rule(group=GROUPS)
    def delete_group(self, group: str) -> None:
        self.forget(self.offsets.tombstones(group))
        assert group not in self.offsets.groups

    @rule(topic=TOPICS)
    def delete_topic(self, topic: str) -> None:
        for group in self.offsets.groups_with({topic}):
            self.forget(self.offsets.tombstones(group, {topic}))
        assert all(
            place[0] != topic for group in self.offsets.groups.values() for place in group.places()
        )

    @rule(group=GROUPS, is_empty=st.booleans(), passed_ms=st.integers(0, 120))
    def expire(self, group: str, is_empty: bool, passed_ms: int) -> None:
        self.now_ms += passed_ms
        since_ms = self.now_ms - passed_ms if is_empty else None
        records = self.offsets.expired_tombstones(group, self.now_ms, RETENTION_MS, since_ms, {"u"})
        self.forget(records)
        for place, stored in self.offsets.groups.get(group, GroupOffsets({}, {})).committed.items():
            one = Committed(*stored)
            assert (
                place[0] == "u"
                or any(place in pending for pending in self.offsets.groups[group].pending.values())
                or one.expire_timestamp_ms > self.now_ms
                or (one.expire_timestamp_ms == -1 and passed_ms < RETENTION_MS)
            )

    def forget(self, records: tuple[StateRecord, ...]) -> None:
        keys = [encode_record(*record) for record in records]
        assert len(set(keys)) == len(keys), "one tombstone a partition"
        self.carry_out(Decision(records))

    @precondition(lambda self: self.log)
    @rule()
    def crash(self) -> None:
        """Go on with what the log says."""
        self.offsets = replayed(self.log)
        self.high_watermark = len(self.log)

    @precondition(lambda self: self.log)
    @rule(with_tombstones=st.booleans())
    def crash_after_compaction(self, with_tombstones: bool) -> None:
        self.offsets = replayed(compacted(self.log, with_tombstones=with_tombstones))
        self.high_watermark = len(self.log)

    @rule(records=st.integers(1, 5))
    def followers_fetch(self, records: int) -> None:
        self.high_watermark = min(self.high_watermark + records, len(self.log))

    # --- what must hold --------------------------------------------------------------------------

    def committed(
        self, group: str, *, require_stable: bool = False
    ) -> dict[Place, tuple[int, int]]:
        """By a coordinator of which everything is replicated."""
        end = len(self.log)
        offsets = self.offsets if self.high_watermark == end else replayed(self.log)
        return self.fetched(offsets, group, end, require_stable=require_stable)

    @staticmethod
    def fetched(
        offsets: Offsets, group: str, high_watermark: int, *, require_stable: bool = False
    ) -> dict[Place, tuple[int, int]]:
        wanted = OffsetFetchGroup(group_id=group, topics=None)
        reply = offsets.fetch(
            0, wanted, require_stable=require_stable, high_watermark=high_watermark
        )
        assert reply.after is not None
        assert reply.after <= high_watermark, "it would wait"
        answer: OffsetFetchGroupResponse = reply.message  # type: ignore[assignment]
        return {
            (topic.name, one.partition_index): (one.committed_offset, one.error_code)
            for topic in answer.topics
            for one in topic.partitions
        }

    @invariant()
    def the_log_read_again_is_the_state(self) -> None:
        again = replayed(self.log)
        assert again.groups == self.offsets.groups
        assert again._open == self.offsets._open

    @invariant()
    def a_reader_gets_what_is_replicated(self) -> None:
        """And what only the leader has makes the offset unstable."""
        mark = self.high_watermark
        if mark == len(self.log):
            assert not any(self.offsets.unreplicated.before(group, mark) for group in ("g", "h"))
            return
        lasting = replayed(self.log[:mark])
        for group in ("g", "h"):
            before = self.fetched(lasting, group, mark)
            assert self.fetched(self.offsets, group, mark) == before
            under_way = {
                (key.topic, key.partition)
                for entry in self.log[mark:]
                if entry.record is not None and entry.producer_id == NO_PRODUCER_ID
                for key, _ in [decoded(entry.record)]
                if key.group == group
            }
            stable = self.fetched(self.offsets, group, mark, require_stable=True)
            assert all(stable[place][1] for place in stable if place in under_way)

    @invariant()
    def the_compacted_log_is_the_state_too(self) -> None:
        for with_tombstones in (True, False):
            again = replayed(compacted(self.log, with_tombstones=with_tombstones))
            assert again.groups == self.offsets.groups

    @invariant()
    def the_state_is_what_the_log_says(self) -> None:
        """Each key's last record that counts; and where a later one may count, it is unstable."""
        is_committed = outcomes(self.log)
        last: dict[tuple[str, Place], int | None] = {}
        pending: dict[tuple[str, Place], set[int]] = {}
        for entry in self.log:
            if entry.record is None:
                continue
            key, value = decoded(entry.record)
            name = (key.group, (key.topic, key.partition))
            outcome = is_committed[entry.offset]
            if outcome:
                last[name] = None if value is None else value.offset
            if value is None:
                pending.pop(name, None)
            elif outcome is None:
                pending.setdefault(name, set()).add(entry.producer_id)
        for group in ("g", "h"):
            said = {
                name[1]: offset
                for name, offset in last.items()
                if name[0] == group and offset is not None
            }
            assert {place: one[0] for place, one in self.committed(group).items()} == said
            assert self.committed(group, require_stable=True) == {
                place: (-1, UnstableOffsetCommit.code) if (group, place) in pending else (offset, 0)
                for place, offset in said.items()
            }
            unsure = {place for name, place in pending if name == group}
            assert self.offsets.count(group) == len(said.keys() | unsure)


TestShard = Shard.TestCase
TestShard.settings = settings(max_examples=examples(150), stateful_step_count=30)
