"""Stores the offsets of a shard's groups: committed offsets, and offsets pending in transactions.

    commit                 a record, which takes effect once it is in the log
    transactional commit   a record in a transactional batch; pending until its transaction's marker
                           is in this partition, dropped if the transaction aborts
    tombstone              removes the key, however it was committed
    fetch                  reports commits that the high watermark has passed (`unreplicated`)

For each key, the latest record in the log determines the offset, even if the marker of a
transactional record comes after a later record (KIP-98). Replaying a compacted log therefore
restores the same state.

This module owns the committed offsets and decides which records to write. The group decides whether
a member may commit and whether the group may be deleted.

Invariant: `groups` contains exactly the groups that have a committed or pending offset. It changes
only in `apply` and `end_transaction`.
"""

from __future__ import annotations

from collections.abc import Container
from sys import intern
from typing import NamedTuple

from barnabas.coordinator.decision import (
    ALL_REPLICATED,
    AT_ONCE,
    NO_PRODUCER_ID,
    NOTHING,
    Decision,
    Reply,
    StateRecord,
    TransactionalBatch,
)
from barnabas.coordinator.offset_answers import (
    commit_answer,
    delete_answer,
    no_offset,
    transactional_answer,
)
from barnabas.coordinator.records import OffsetCommitKey, OffsetCommitValue
from barnabas.coordinator.unreplicated import LOG_OFFSET, Place, Stored, Unreplicated
from barnabas.errors import (
    GroupSubscribedToTopic,
    InvalidGroupId,
    OffsetMetadataTooLarge,
    UnstableOffsetCommit,
)
from barnabas.protocol.message import Message
from barnabas.protocol.messages.offset_commit import OffsetCommitRequest
from barnabas.protocol.messages.offset_delete import OffsetDeleteRequest
from barnabas.protocol.messages.offset_fetch import (
    OffsetFetchGroup,
    OffsetFetchGroupResponse,
    OffsetFetchPartitionResponse,
    OffsetFetchTopicResponse,
)
from barnabas.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest

_NOT_GIVEN = -1  # the client did not specify the retention, expiry time or commit time
_END_OF_TIME_MS = 2**63 - 1


class Committed(NamedTuple):
    """A committed offset.

    Times are in ms since the epoch. A missing leader epoch or time is -1.
    """

    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp_ms: int
    expire_timestamp_ms: int
    log_offset: int
    """The log offset of the record.

    If there are a plain and a transactional commit, the later record wins.
    """


class GroupOffsets(NamedTuple):
    """The offsets of one group: committed offsets, and offsets pending in transactions."""

    committed: dict[Place, Stored]
    pending: dict[int, dict[Place, Stored]]  # by producer id

    def is_stable(self, place: Place) -> bool:
        """Return whether the offset is final, because no open transaction can still change it."""
        return not self.pending or all(place not in one for one in self.pending.values())

    def places(self) -> list[Place]:
        """Return every partition that has a committed or pending offset."""
        places = dict.fromkeys(self.committed)
        for pending in self.pending.values():
            places.update(dict.fromkeys(pending))
        return list(places)


_NO_OFFSETS = GroupOffsets({}, {})  # the result for a group without offsets


class Offsets:
    """The offsets of all groups of one shard."""

    __slots__ = ("_open", "groups", "unreplicated")

    def __init__(self) -> None:
        self.groups: dict[str, GroupOffsets] = {}
        # Maps each producer to the groups in which it has pending offsets. The inner dict serves as
        # an ordered set.
        self._open: dict[int, dict[str, None]] = {}
        self.unreplicated = Unreplicated()

    # --- commits ---------------------------------------------------------------------------------

    def commit(
        self, ticket: int, request: OffsetCommitRequest, wall_ms: int, max_metadata: int
    ) -> Decision:
        """Return the records to write for an accepted commit.

        `max_metadata` is the value of `offset.metadata.max.bytes`, which Kafka counts in UTF-16
        units. As in Kafka, a group with an empty name may commit.
        """
        group_id = request.group_id
        expires_ms = request.retention_time_ms
        # Only versions 2 to 4 of OffsetCommit contain a retention time (KIP-211).
        if expires_ms != _NOT_GIVEN:
            expires_ms = min(wall_ms + expires_ms, _END_OF_TIME_MS)
        answer = commit_answer(request)
        records = []
        for topic, topic_answer in zip(request.topics, answer.topics, strict=True):
            name = topic.name
            for at, partition in enumerate(topic.partitions):
                metadata = partition.committed_metadata or ""
                if _is_too_large(metadata, max_metadata):
                    topic_answer.partitions[at].error_code = OffsetMetadataTooLarge.code
                    continue
                committed_ms = partition.commit_timestamp
                record = StateRecord(
                    OffsetCommitKey(
                        group=group_id, topic=name, partition=partition.partition_index
                    ),
                    OffsetCommitValue(
                        offset=partition.committed_offset,
                        leader_epoch=partition.committed_leader_epoch,
                        metadata=metadata,
                        commit_timestamp=wall_ms if committed_ms == _NOT_GIVEN else committed_ms,
                        expire_timestamp=expires_ms,
                    ),
                )
                records.append(record)
        return Decision(tuple(records), (Reply(ticket, answer),))

    def commit_transactional(
        self, ticket: int, request: TxnOffsetCommitRequest, wall_ms: int, max_metadata: int
    ) -> Decision:
        """Return the records to write for an accepted commit in the producer's transaction."""
        group_id = request.group_id
        # Old simple consumers make plain commits without a group name. In a transaction, Kafka
        # rejects a commit without a group name.
        if not group_id:
            return _reply(ticket, transactional_answer(request, InvalidGroupId))
        answer = transactional_answer(request)
        records = []
        for topic, topic_answer in zip(request.topics, answer.topics, strict=True):
            for at, partition in enumerate(topic.partitions):
                metadata = partition.committed_metadata or ""
                if _is_too_large(metadata, max_metadata):
                    topic_answer.partitions[at].error_code = OffsetMetadataTooLarge.code
                    continue
                record = StateRecord(
                    OffsetCommitKey(
                        group=group_id, topic=topic.name, partition=partition.partition_index
                    ),
                    OffsetCommitValue(
                        offset=partition.committed_offset,
                        leader_epoch=partition.committed_leader_epoch,
                        metadata=metadata,
                        commit_timestamp=wall_ms,
                    ),
                )
                records.append(record)
        batch = TransactionalBatch(
            request.transactional_id, request.producer_id, request.producer_epoch
        )
        return Decision(tuple(records), (Reply(ticket, answer),), batch=batch if records else None)

    # --- queries -----------------------------------------------------------------------

    def fetch(
        self,
        ticket: int,
        wanted: OffsetFetchGroup,
        *,
        require_stable: bool,
        high_watermark: int = ALL_REPLICATED,
    ) -> Reply:
        """Reply with the offsets of the requested partitions, or with all offsets if none are
        requested.

        As in Kafka, a commit is not visible until it is replicated; until then, the response
        contains the previous offset.

        The reply waits only for commits that were loaded from above the high watermark, because the
        previous coordinator may have acknowledged them to a client. If `require_stable` is set, a
        partition gets UNSTABLE_OFFSET_COMMIT while its offset may still change because of an open
        transaction or an unreplicated commit (KIP-447).
        """
        before = self.unreplicated.before(wanted.group_id, high_watermark)
        group = self.groups.get(wanted.group_id) or _NO_OFFSETS
        if wanted.topics is not None:
            places = [
                (topic.name, number)
                for topic in wanted.topics
                for number in topic.partition_indexes
            ]
        else:
            kept = {place: one for place, one in before.items() if one is not None}
            gone = before.keys() - kept.keys()
            places = [place for place in group.committed | kept if place not in gone]
        # A response does not have to wait if it contains no offset from above the high watermark.
        after = AT_ONCE
        topics: dict[str, list[OffsetFetchPartitionResponse]] = {}
        for place in places:
            is_replicated = place not in before
            stored = group.committed.get(place) if is_replicated else before[place]
            # KIP-447: when a consumer takes over a partition, its predecessor's transaction may be
            # about to commit an offset. The consumer must not start before that offset.
            if require_stable and not (is_replicated and group.is_stable(place)):
                answer = no_offset(place[1], UnstableOffsetCommit.code)
            elif stored is None:
                answer = no_offset(place[1])
            else:
                answer = _fetch_row(place, stored)
                after = max(after, stored[LOG_OFFSET] + 1)
            topics.setdefault(place[0], []).append(answer)
        response = OffsetFetchGroupResponse(
            group_id=wanted.group_id,
            topics=[
                OffsetFetchTopicResponse(name=name, partitions=partitions)
                for name, partitions in topics.items()
            ],
        )
        return Reply(ticket, response, after)

    def count(self, group_id: str) -> int:
        """Return the number of partitions for which the group has a committed or pending offset.

        If a decision contains that many tombstones for a group without members, the group is
        removed, because a decision never contains two tombstones for the same partition.
        """
        group = self.groups.get(group_id)
        if group is None:
            return 0
        return len(group.places()) if group.pending else len(group.committed)

    # --- tombstones -----------------------------------------------------------------------

    def delete(
        self, ticket: int, request: OffsetDeleteRequest, subscribed: Container[str] = ()
    ) -> Decision:
        """Remove the offsets of the requested partitions, except those in `subscribed` topics."""
        answer = delete_answer(request, subscribed, GroupSubscribedToTopic)
        group_id = request.group_id
        group = self.groups.get(group_id)
        if group is None:
            return _reply(ticket, answer)
        wanted = {
            (topic.name, partition.partition_index)
            for topic in request.topics
            if topic.name not in subscribed
            for partition in topic.partitions
        }
        records = [_tombstone(group_id, place) for place in group.places() if place in wanted]
        return Decision(tuple(records), (Reply(ticket, answer),))

    def tombstones(
        self, group_id: str, topics: Container[str] | None = None
    ) -> tuple[StateRecord, ...]:
        """Return tombstones for a group's committed and pending offsets.

        If `topics` is given, the offsets of other topics are kept.
        """
        group = self.groups.get(group_id)
        if group is None:
            return ()
        return tuple(
            _tombstone(group_id, at) for at in group.places() if topics is None or at[0] in topics
        )

    def groups_with(self, topics: Container[str]) -> list[str]:
        """Return the groups that have a committed or pending offset in any of these topics."""
        return [
            group_id
            for group_id, group in self.groups.items()
            if any(at[0] in topics for at in group.places())
        ]

    def expired_tombstones(
        self,
        group_id: str,
        wall_ms: int,
        retention_ms: int,
        empty_since_ms: int | None = None,
        subscribed: Container[str] = (),
    ) -> tuple[StateRecord, ...]:
        """Return tombstones for expired offsets (KIP-211).

        An offset is retained for `offsets.retention.minutes` after it was committed or, if the
        group is empty, after the group became empty (`empty_since_ms`). If the offset has its own
        expiry time, it is retained until then. Offsets in `subscribed` topics and offsets with a
        pending transactional commit do not expire.
        """
        group = self.groups.get(group_id)
        if group is None:
            return ()
        return tuple(
            _tombstone(group_id, place)
            for place, stored in group.committed.items()
            if place[0] not in subscribed
            and wall_ms >= _expires_ms(Committed(*stored), retention_ms, empty_since_ms)
            and group.is_stable(place)
        )

    # --- hard state ------------------------------------------------------------------------------

    def apply(
        self,
        key: OffsetCommitKey,
        value: OffsetCommitValue | None,
        offset: int,
        producer_id: int = NO_PRODUCER_ID,
        high_watermark: int = ALL_REPLICATED,
    ) -> None:
        """Apply the record at this offset of the log.

        If the record is part of a transaction, its producer is passed too.

        `fetch` returns the previous value until `high_watermark` is above the record's offset.
        """
        place = (intern(key.topic), key.partition)
        group = self.groups.get(key.group)
        if value is None:
            # Until the tombstone is replicated, a fetch still returns the previously committed
            # offset.
            if producer_id == NO_PRODUCER_ID and offset >= high_watermark:
                known = None if group is None else group.committed.get(place)
                self.unreplicated.add(offset, (key.group, place), known, None, high_watermark)
            if group is not None:
                self._forget(key.group, group, place, producer_id)
            return
        if group is None:
            group = self.groups[key.group] = GroupOffsets({}, {})
        stored = (
            value.offset,
            value.leader_epoch,
            value.metadata,
            value.commit_timestamp,
            value.expire_timestamp,
            offset,
        )
        if producer_id == NO_PRODUCER_ID:
            if offset >= high_watermark:
                known = group.committed.get(place)
                self.unreplicated.add(offset, (key.group, place), known, stored, high_watermark)
            group.committed[place] = stored
            return
        # KIP-98: the offset becomes visible when the marker of the transaction is in this
        # partition.
        group.pending.setdefault(producer_id, {})[place] = stored
        self._open.setdefault(producer_id, {})[key.group] = None

    def end_transaction(self, producer_id: int, is_commit: bool) -> None:
        """Commit or discard the producer's pending offsets.

        The marker of the transaction is now in the log.
        """
        for group_id in self._open.pop(producer_id, ()):
            group = self.groups[group_id]
            pending = group.pending.pop(producer_id)
            if is_commit:
                for place, stored in pending.items():
                    known = group.committed.get(place)
                    # If a plain commit was written after this record, the plain commit wins,
                    # wherever the marker is.
                    if known is None or known[LOG_OFFSET] < stored[LOG_OFFSET]:
                        group.committed[place] = stored
                    self.unreplicated.on_committed(group_id, place, stored)
            self._drop_if_empty(group_id, group)

    def _forget(self, group_id: str, group: GroupOffsets, place: Place, producer_id: int) -> None:
        """Apply a tombstone.

        A tombstone in a transaction removes only offsets that were written in that transaction.
        Kafka interprets such tombstones in the same way, but never writes them.
        """
        producers = list(group.pending)
        if producer_id == NO_PRODUCER_ID:
            group.committed.pop(place, None)
        else:
            producers = [each for each in producers if each == producer_id]
        for each in producers:
            pending = group.pending[each]
            pending.pop(place, None)
            if not pending:
                del group.pending[each]
                del self._open[each][group_id]
                if not self._open[each]:
                    del self._open[each]
        self._drop_if_empty(group_id, group)

    def _drop_if_empty(self, group_id: str, group: GroupOffsets) -> None:
        if not group.committed and not group.pending:
            del self.groups[group_id]


def _fetch_row(place: Place, stored: Stored) -> OffsetFetchPartitionResponse:
    committed = Committed(*stored)
    return OffsetFetchPartitionResponse(
        partition_index=place[1],
        committed_offset=committed.offset,
        committed_leader_epoch=committed.leader_epoch,
        metadata=committed.metadata,
    )


def _expires_ms(committed: Committed, retention_ms: int, empty_since_ms: int | None) -> int:
    if committed.expire_timestamp_ms != _NOT_GIVEN:
        return committed.expire_timestamp_ms
    since = committed.commit_timestamp_ms if empty_since_ms is None else empty_since_ms
    return since + retention_ms


def _tombstone(group_id: str, place: Place) -> StateRecord:
    topic, partition = place
    return StateRecord(OffsetCommitKey(group=group_id, topic=topic, partition=partition), None)


def _is_too_large(metadata: str, limit: int) -> bool:
    """Return whether the text is longer than `limit` UTF-16 units (one or two per character)."""
    return 2 * len(metadata) > limit and len(metadata.encode("utf-16-le")) // 2 > limit


def _reply(ticket: int, message: Message) -> Decision:
    return NOTHING._replace(replies=(Reply(ticket, message),))
