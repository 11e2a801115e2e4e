"""Decides who may commit offsets for a group, which topics are in use, and when offsets expire."""

from __future__ import annotations

from collections.abc import Container, Sequence

from barnabas.coordinator.group import NO_TIMESTAMP, Group, GroupState
from barnabas.errors import (
    IllegalGeneration,
    KafkaError,
    RebalanceInProgress,
    UnknownMemberId,
)
from barnabas.protocol.consumer_protocol import CONSUMER_PROTOCOL
from barnabas.protocol.messages.offset_commit import OffsetCommitRequest
from barnabas.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest

Commit = OffsetCommitRequest | TxnOffsetCommitRequest


def check_commit(group: Group | None, request: OffsetCommitRequest) -> type[KafkaError] | None:
    """Return the error of an OffsetCommit, or None if it is valid.

    A commit without a generation comes from a tool or from a consumer that assigns its own
    partitions. It is accepted only while the group has no members, because it would overwrite their
    progress.
    """
    generation = request.generation_id_or_member_epoch
    if group is None:
        return None if generation < 0 else IllegalGeneration
    # The commit is from a tool or from a consumer that assigns its own partitions. The group has no
    # members, so no member's progress is overwritten.
    if group.state is GroupState.EMPTY and generation < 0:
        return None
    if not _names_a_member(request, generation):
        return UnknownMemberId
    error = _check_member(group, request, generation)
    if error is None and group.state is GroupState.COMPLETING:
        # The member is in this generation, so it can sync, but its partitions may have moved to
        # another member.
        return RebalanceInProgress
    return error


def check_transactional(
    group: Group | None, request: TxnOffsetCommitRequest
) -> type[KafkaError] | None:
    """Return the error of a TxnOffsetCommit.

    Below version 3, the request has no member id (KIP-447).
    """
    generation = request.generation_id
    if not _names_a_member(request, generation):
        return None
    if group is None or group.state is GroupState.EMPTY:
        return None if generation < 0 else UnknownMemberId
    return _check_member(group, request, generation)


def _names_a_member(request: Commit, generation: int) -> bool:
    return generation >= 0 or bool(request.member_id) or request.group_instance_id is not None


def _check_member(group: Group, request: Commit, generation: int) -> type[KafkaError] | None:
    error = group.check_member(request.member_id, request.group_instance_id)
    # GC-2: a zombie from an earlier generation must not overwrite its successor's progress.
    if error is None and generation != group.generation:
        return IllegalGeneration
    return error


def topics_in_use(group: Group, topics: Sequence[str]) -> Container[str] | None:
    """Return the topics that members are reading or might start to read.

    The result is None if this cannot be determined because the members are not consumers.
    """
    if group.state is GroupState.EMPTY:
        return ()
    if group.protocol_type != CONSUMER_PROTOCOL:
        return None
    return frozenset(topic for topic in topics if group.is_subscribed_to(topic))


def retention_of(group: Group) -> tuple[int | None, Container[str] | None]:
    """Return when retention of the group's offsets starts, and which topics' offsets do not expire.

    The result is a tuple (since, topics). If `since` is None, each offset is retained from the time
    of its commit. If `topics` is None, no offsets expire (KIP-211).
    """
    # KIP-211: if no member has ever joined, each offset is retained from the time of its commit.
    if group.protocol_type is None:
        return None, ()
    if group.state is GroupState.EMPTY:
        return None if group.state_since_ms == NO_TIMESTAMP else group.state_since_ms, ()
    # KIP-211: the offsets of subscribed topics never expire. For other topics, only the age of the
    # last commit matters.
    if group.state is GroupState.STABLE:
        return None, group.subscribed_topics()
    return None, None
