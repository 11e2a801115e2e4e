"""GC-3: what groups have committed, as one shard of the coordinator has it."""

from __future__ import annotations

from itertools import count

import pytest

from barnabas.coordinator.decision import Decision, StateRecord, TransactionalBatch
from barnabas.coordinator.offsets import Committed, Offsets
from barnabas.coordinator.records import OffsetCommitKey, OffsetCommitValue, encode_record
from barnabas.errors import (
    GroupSubscribedToTopic,
    InvalidGroupId,
    OffsetMetadataTooLarge,
    UnstableOffsetCommit,
)
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
from barnabas.protocol.messages.offset_fetch import (
    OffsetFetchGroup,
    OffsetFetchPartitionResponse,
    OffsetFetchTopic,
)
from barnabas.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitPartition,
    TxnOffsetCommitRequest,
    TxnOffsetCommitTopic,
)

NOW_MS = 1_700_000_000_000
DAY_MS = 24 * 60 * 60 * 1000
MAX_METADATA = 4096
PRODUCER = 4000


class Shard:
    """Offsets with a log: what is decided is appended and applied, as the broker does it."""

    def __init__(self) -> None:
        self.offsets = Offsets()
        self.log_offsets = count()
        self.now_ms = NOW_MS

    def carry_out(self, decision: Decision) -> Decision:
        producer = () if decision.batch is None else (decision.batch.producer_id,)
        for key, value in decision.records:
            assert encode_record(key, value)
            self.offsets.apply(key, value, next(self.log_offsets), *producer)  # type: ignore[arg-type]
        return decision

    def commit(self, offset: int = 1, topic: str = "t", partition: int = 0, **more: object) -> int:
        """The error code of a commit of one partition by the group g."""
        fields = {"generation_id_or_member_epoch": -1, **more}
        of_partition = {
            name: fields.pop(name)
            for name in ("committed_leader_epoch", "committed_metadata", "commit_timestamp")
            if name in fields
        }
        one = OffsetCommitPartition(
            partition_index=partition, committed_offset=offset, **of_partition
        )
        request = OffsetCommitRequest(
            topics=[OffsetCommitTopic(name=topic, partitions=[one])],
            **({"group_id": "g"} | fields),
        )
        decision = self.carry_out(self.offsets.commit(7, request, self.now_ms, MAX_METADATA))
        ((ticket, answer, _),) = decision.replies
        assert ticket == 7
        (answered,) = answer.topics[0].partitions
        assert (answer.topics[0].name, answered.partition_index) == (topic, partition)
        return int(answered.error_code)

    def commit_transactional(
        self,
        offset: int = 1,
        producer: int = PRODUCER,
        topic: str = "t",
        metadata: str = "",
        group_id: str = "g",
    ) -> Decision:
        one = TxnOffsetCommitPartition(
            partition_index=0,
            committed_offset=offset,
            committed_leader_epoch=3,
            committed_metadata=metadata,
        )
        request = TxnOffsetCommitRequest(
            transactional_id="tx",
            group_id=group_id,
            producer_id=producer,
            producer_epoch=2,
            topics=[TxnOffsetCommitTopic(name=topic, partitions=[one])],
        )
        return self.carry_out(
            self.offsets.commit_transactional(7, request, self.now_ms, MAX_METADATA)
        )

    def marker(self, *, is_commit: bool, producer: int = PRODUCER) -> None:
        next(self.log_offsets)
        self.offsets.end_transaction(producer, is_commit)

    def fetch(self, *, require_stable: bool = False) -> dict[tuple[str, int], tuple[int, int]]:
        """Offset and error code of everything that the group g has committed."""
        answer = self.offsets.fetch(
            0, OffsetFetchGroup(group_id="g", topics=None), require_stable=require_stable
        ).message
        return {
            (topic.name, answered.partition_index): (answered.committed_offset, answered.error_code)
            for topic in answer.topics
            for answered in topic.partitions
        }

    def fetch_partitions(
        self, *numbers: int, topic: str = "t"
    ) -> list[OffsetFetchPartitionResponse]:
        wanted = [OffsetFetchTopic(name=topic, partition_indexes=list(numbers))]
        group = OffsetFetchGroup(group_id="g", topics=wanted)
        return self.offsets.fetch(0, group, require_stable=False).message.topics[0].partitions

    def forget(self, records: tuple[StateRecord, ...]) -> set[tuple[str, int]]:
        """Carry out tombstones; what they were about."""
        assert all(value is None for _, value in records)
        self.carry_out(Decision(records))
        return {(key.topic, key.partition) for key, _ in records}  # type: ignore[attr-defined]

    def expire(self, **how: object) -> set[tuple[str, int]]:
        return self.forget(self.offsets.expired_tombstones("g", self.now_ms, 7 * DAY_MS, **how))  # type: ignore[arg-type]


@pytest.fixture
def shard() -> Shard:
    return Shard()


# --- commit and fetch ----------------------------------------------------------------------------


def test_committed_offsets_are_returned(shard: Shard) -> None:
    assert shard.commit(100, committed_leader_epoch=5, committed_metadata="here") == 0
    assert shard.commit(7, partition=1, committed_metadata=None) == 0
    assert shard.fetch_partitions(0, 1, 2) == [
        OffsetFetchPartitionResponse(
            partition_index=0, committed_offset=100, committed_leader_epoch=5, metadata="here"
        ),
        OffsetFetchPartitionResponse(partition_index=1, committed_offset=7, metadata=""),
        OffsetFetchPartitionResponse(partition_index=2, committed_offset=-1, metadata=""),
    ]


def test_all_offsets_of_a_group(shard: Shard) -> None:
    """Null instead of topics (version 2 on)."""
    shard.commit(1)
    shard.commit(2, topic="u", partition=3)
    shard.commit(9, group_id="another")
    shard.commit(4)
    assert shard.fetch() == {("t", 0): (4, 0), ("u", 3): (2, 0)}


def test_an_unknown_group_has_no_offsets(shard: Shard) -> None:
    assert shard.fetch() == {}
    assert shard.fetch_partitions(0)[0].committed_offset == -1


def test_a_commit_is_a_record_and_changes_nothing_by_itself(shard: Shard) -> None:
    """A failed append leaves nothing to undo."""
    request = OffsetCommitRequest(
        group_id="g",
        topics=[
            OffsetCommitTopic(
                name="t",
                partitions=[OffsetCommitPartition(partition_index=2, committed_offset=5)],
            )
        ],
    )
    decision = shard.offsets.commit(1, request, NOW_MS, MAX_METADATA)
    assert decision.records == (
        StateRecord(
            OffsetCommitKey(group="g", topic="t", partition=2),
            OffsetCommitValue(offset=5, commit_timestamp=NOW_MS),
        ),
    )
    assert decision.batch is None
    assert shard.offsets.groups == {}


@pytest.mark.parametrize(
    ("metadata", "limit", "error"),
    [
        ("m" * 4096, 4096, 0),
        ("m" * 4097, 4096, OffsetMetadataTooLarge.code),
        ("ü" * 4096, 4096, 0),  # Kafka counts UTF-16 units, not bytes
        ("\N{GRINNING FACE}" * 2049, 4096, OffsetMetadataTooLarge.code),
    ],
)
def test_metadata_that_is_too_large(shard: Shard, metadata: str, limit: int, error: int) -> None:
    request = OffsetCommitRequest(
        group_id="g",
        topics=[
            OffsetCommitTopic(
                name="t",
                partitions=[
                    OffsetCommitPartition(partition_index=0, committed_metadata=metadata),
                    OffsetCommitPartition(partition_index=1, committed_metadata="short"),
                ],
            )
        ],
    )
    decision = shard.carry_out(shard.offsets.commit(1, request, NOW_MS, limit))
    answered = decision.replies[0].message.topics[0].partitions  # type: ignore[attr-defined]
    assert [each.error_code for each in answered] == [error, 0]
    assert shard.offsets.count("g") == (1 if error else 2)


def test_times_that_the_client_gives(shard: Shard) -> None:
    """Of the commit in version 1, of how long it is kept in 2 to 4."""
    shard.commit(1, commit_timestamp=5)
    shard.commit(2, partition=1, retention_time_ms=1000)
    shard.commit(3, partition=2, retention_time_ms=2**63 - 1)
    assert shard.offsets.groups["g"].committed == {
        ("t", 0): Committed(1, -1, "", 5, -1, 0),
        ("t", 1): Committed(2, -1, "", NOW_MS, NOW_MS + 1000, 1),
        ("t", 2): Committed(3, -1, "", NOW_MS, 2**63 - 1, 2),
    }


# --- transactions --------------------------------------------------------------------------------


def test_a_transactional_commit_waits_for_its_marker(shard: Shard) -> None:
    """TP-8: and belongs to the producer's transaction in the log as well."""
    shard.commit(1)
    decision = shard.commit_transactional(10)
    assert decision.batch == TransactionalBatch("tx", PRODUCER, 2)
    assert decision.replies[0].message.topics[0].partitions[0].error_code == 0  # type: ignore[attr-defined]
    assert shard.fetch() == {("t", 0): (1, 0)}
    shard.marker(is_commit=True)
    assert shard.fetch(require_stable=True) == {("t", 0): (10, 0)}
    assert shard.fetch_partitions(0)[0].committed_leader_epoch == 3


def test_an_aborted_one_never_was(shard: Shard) -> None:
    shard.commit_transactional(10)
    assert shard.offsets.count("g") == 1
    shard.marker(is_commit=False)
    assert shard.offsets.groups == {}


def test_require_stable_waits_for_the_transaction(shard: Shard) -> None:
    """KIP-447: a consumer that takes over must not begin before what is about to be committed."""
    shard.commit(1)
    shard.commit(2, partition=1)
    shard.commit_transactional(10)
    unstable = (-1, UnstableOffsetCommit.code)
    assert shard.fetch(require_stable=True) == {("t", 0): unstable, ("t", 1): (2, 0)}
    shard.marker(is_commit=False)
    assert shard.fetch(require_stable=True) == {("t", 0): (1, 0), ("t", 1): (2, 0)}


@pytest.mark.parametrize("is_plain_last", [True, False])
def test_of_a_plain_and_a_transactional_commit_the_later_in_the_log_wins(
    shard: Shard, is_plain_last: bool
) -> None:
    """Wherever the marker stands: so it is in Kafka, and after compaction too."""
    if not is_plain_last:
        shard.commit(1)
    shard.commit_transactional(10)
    if is_plain_last:
        shard.commit(1)
    shard.marker(is_commit=True)
    assert shard.fetch() == {("t", 0): (1 if is_plain_last else 10, 0)}


def test_of_two_transactions_the_later_commit_wins_whichever_ends_first(shard: Shard) -> None:
    shard.commit_transactional(10, producer=1)
    shard.commit_transactional(20, producer=2)
    shard.marker(is_commit=True, producer=2)
    shard.marker(is_commit=True, producer=1)
    assert shard.fetch() == {("t", 0): (20, 0)}


def test_a_marker_without_offsets_in_this_shard(shard: Shard) -> None:
    shard.commit(1)
    shard.marker(is_commit=True)
    shard.marker(is_commit=False)
    assert shard.fetch() == {("t", 0): (1, 0)}


def test_a_transactional_commit_whose_metadata_is_too_large(shard: Shard) -> None:
    decision = shard.commit_transactional(1, metadata="m" * 4097)
    assert decision.records == () and decision.batch is None
    answered = decision.replies[0].message.topics[0].partitions[0]  # type: ignore[attr-defined]
    assert answered.error_code == OffsetMetadataTooLarge.code


def test_a_transactional_commit_of_a_group_without_a_name(shard: Shard) -> None:
    """A plain one may, as it always could."""
    assert shard.commit(group_id="") == 0
    decision = shard.commit_transactional(1, group_id="")
    assert decision.records == ()
    answered = decision.replies[0].message.topics[0].partitions[0]  # type: ignore[attr-defined]
    assert answered.error_code == InvalidGroupId.code


def test_a_transactional_tombstone_takes_back_what_its_transaction_committed(shard: Shard) -> None:
    """No broker writes such records; Kafka reads them this way."""
    shard.commit(1)
    shard.commit_transactional(10)
    key = OffsetCommitKey(group="g", topic="t", partition=0)
    shard.offsets.apply(key, None, next(shard.log_offsets), PRODUCER)
    shard.marker(is_commit=True)
    assert shard.fetch() == {("t", 0): (1, 0)}


# --- what is forgotten ---------------------------------------------------------------------------


def delete(shard: Shard, *names: str, subscribed: tuple[str, ...] = ()) -> dict[str, int]:
    request = OffsetDeleteRequest(
        group_id="g",
        topics=[
            OffsetDeleteTopic(name=name, partitions=[OffsetDeletePartition(partition_index=0)])
            for name in names
        ],
    )
    decision = shard.carry_out(shard.offsets.delete(7, request, subscribed))
    ((ticket, answer, _),) = decision.replies
    assert ticket == 7 and answer.error_code == 0
    return {topic.name: topic.partitions[0].error_code for topic in answer.topics}


def test_deleted_offsets(shard: Shard) -> None:
    """KIP-496: those that were never committed are deleted just as well."""
    for topic in ("t", "u", "v"):
        shard.commit(1, topic)
    assert delete(shard, "t", "none", "u", subscribed=("u",)) == {
        "t": 0,
        "none": 0,
        "u": GroupSubscribedToTopic.code,
    }
    assert shard.fetch() == {("u", 0): (1, 0), ("v", 0): (1, 0)}
    assert shard.offsets.count("g") == 2
    assert delete(shard, "u", "v") == {"u": 0, "v": 0}
    assert shard.offsets.groups == {}
    assert delete(shard, "u") == {"u": 0}


def test_what_is_deleted_does_not_come_back_with_a_transaction(shard: Shard) -> None:
    """The tombstone is the later one in the log."""
    shard.commit_transactional(10)
    delete(shard, "t")
    shard.marker(is_commit=True)
    assert shard.offsets.groups == {}


def test_what_is_committed_after_a_deletion_stays(shard: Shard) -> None:
    shard.commit_transactional(10, topic="t")
    shard.commit_transactional(10, topic="u")
    delete(shard, "t")
    shard.commit_transactional(11, topic="t")
    shard.marker(is_commit=True)
    assert shard.fetch() == {("t", 0): (11, 0), ("u", 0): (10, 0)}


def test_a_whole_group(shard: Shard) -> None:
    shard.commit(1)
    shard.commit(1, partition=1)
    shard.commit_transactional(10, topic="u")
    shard.commit(5, group_id="another")
    records = shard.offsets.tombstones("g")
    assert len(records) == shard.offsets.count("g") == 3
    assert shard.forget(records) == {("t", 0), ("t", 1), ("u", 0)}
    assert list(shard.offsets.groups) == ["another"]
    assert shard.offsets.tombstones("g") == ()


def test_deleted_topics(shard: Shard) -> None:
    for topic in ("t", "u"):
        shard.commit(1, topic)
        shard.commit(1, topic, group_id="another")
    shard.commit(1, "u", group_id="third")
    shard.commit_transactional(10, topic="v")
    gone = {"t", "v"}
    by_group = {
        name: shard.offsets.tombstones(name, gone) for name in shard.offsets.groups_with(gone)
    }
    assert {name: len(records) for name, records in by_group.items()} == {"g": 2, "another": 1}
    for records in by_group.values():
        shard.forget(records)
    assert shard.fetch() == {("u", 0): (1, 0)}
    shard.marker(is_commit=True)
    assert shard.offsets.groups_with(gone) == []


# --- expiry (KIP-211) ----------------------------------------------------------------------------


def test_offsets_of_a_consumer_without_a_group_expire_by_their_commit(shard: Shard) -> None:
    shard.commit(1)
    shard.now_ms += 1
    shard.commit(1, partition=1)
    shard.now_ms += 7 * DAY_MS - 2
    assert shard.expire() == set()
    shard.now_ms += 1
    assert shard.expire() == {("t", 0)}
    assert shard.fetch() == {("t", 1): (1, 0)}


def test_offsets_of_an_empty_group_expire_together(shard: Shard) -> None:
    """However long ago they were committed, and however lately."""
    shard.commit(1, commit_timestamp=0)
    shard.commit(1, partition=1)
    empty_since_ms = NOW_MS + DAY_MS
    shard.now_ms = empty_since_ms + 7 * DAY_MS - 1
    assert shard.expire(empty_since_ms=empty_since_ms) == set()
    shard.now_ms += 1
    assert shard.expire(empty_since_ms=empty_since_ms) == {("t", 0), ("t", 1)}
    assert shard.offsets.groups == {}


def test_offsets_of_subscribed_topics_are_kept(shard: Shard) -> None:
    shard.commit(1)
    shard.commit(1, topic="old")
    shard.now_ms += 30 * DAY_MS
    assert shard.expire(subscribed={"t"}) == {("old", 0)}
    assert shard.fetch() == {("t", 0): (1, 0)}


def test_an_expiry_of_its_own_counts_alone(shard: Shard) -> None:
    """Of OffsetCommit 2 to 4, and of Kafkas before 2.1."""
    shard.commit(1, retention_time_ms=1000)
    shard.commit(1, partition=1, retention_time_ms=30 * DAY_MS)
    shard.now_ms += 1000
    assert shard.expire() == {("t", 0)}
    shard.now_ms += 20 * DAY_MS
    assert shard.expire(empty_since_ms=NOW_MS) == set()


def test_an_offset_that_a_transaction_may_renew_does_not_expire(shard: Shard) -> None:
    shard.commit(1)
    shard.now_ms += 30 * DAY_MS
    shard.commit_transactional(10)
    assert shard.expire() == set()
    shard.marker(is_commit=False)
    assert shard.expire() == {("t", 0)}


def test_nothing_expires_of_a_group_without_offsets(shard: Shard) -> None:
    assert shard.expire() == set()
