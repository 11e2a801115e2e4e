"""Reads and writes a group's offsets at its coordinator (CO-4).

A committed offset is the offset of the next record to read: the offset of the last processed
record, plus one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol, TypeVar

from barnabas.client import arguments
from barnabas.client.coordinator import CoordinatorFinder
from barnabas.client.errors import broker_error
from barnabas.errors import KafkaError, UnknownTopicOrPartition, error_for_code
from barnabas.protocol.api import METADATA, OFFSET_COMMIT, OFFSET_FETCH
from barnabas.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from barnabas.protocol.messages.offset_commit import (
    OffsetCommitPartition,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitTopic,
)
from barnabas.protocol.messages.offset_fetch import (
    OffsetFetchGroup,
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchTopic,
)
from barnabas.protocol.messages.txn_offset_commit import TxnOffsetCommitPartition
from barnabas.types import TopicPartition, by_topic

_MANY_FROM = 8  # the first OffsetFetch version for several groups (KIP-709)
_STABLE_FROM = 7  # the first version that can wait for open transactions (KIP-447)
_MOST_SHOWN = 3  # partitions shown in an error message

P = TypeVar("P", OffsetCommitPartition, TxnOffsetCommitPartition)


class AnsweredPartition(Protocol):
    """The result for one partition in a coordinator's response."""

    @property
    def partition_index(self) -> int: ...
    @property
    def error_code(self) -> int: ...


class AnsweredTopic(Protocol):
    """A topic in the response to OffsetCommit, TxnOffsetCommit or OffsetDelete."""

    @property
    def name(self) -> str: ...
    @property
    def partitions(self) -> Sequence[AnsweredPartition]: ...


class OffsetAndMetadata(NamedTuple):
    """The offset that a group has committed for a partition."""

    offset: int  # the offset of the next record to read
    metadata: str = ""  # any text; stored with the offset
    leader_epoch: int = -1  # the epoch of the last record read; -1: unknown


class GroupMetadata(NamedTuple):
    """The group, member and generation for a commit. A stale generation is rejected (KIP-447)."""

    group_id: str
    generation: int = -1  # -1: not a member; the group must have no members
    member_id: str = ""
    instance_id: str | None = None


async def fetch_committed(
    coordinators: CoordinatorFinder,
    group_id: str,
    partitions: Iterable[TopicPartition] | None,
    *,
    require_stable: bool = False,
) -> dict[TopicPartition, OffsetAndMetadata]:
    """Return the group's offsets for these partitions (or for all). Missing offsets are omitted.

    Makes a single attempt. Raises Unreachable or the first KafkaError, which may be retriable, such
    as UnstableOffsetCommit.
    """
    topics: list[OffsetFetchTopic] | None = None
    if partitions is not None:
        # An empty list means no partitions; null means all (from version 2 on).
        topics = [
            OffsetFetchTopic(name=topic, partition_indexes=numbers)
            for topic, numbers in by_topic(partitions).items()
        ]
    # Open the channel first, because the form of the request depends on the broker's version.
    # `call` then uses the same channel.
    version = (await coordinators.channel(group_id)).version(OFFSET_FETCH)
    request = OffsetFetchRequest(require_stable=require_stable and version >= _STABLE_FROM)
    if version >= _MANY_FROM:
        request.groups = [OffsetFetchGroup(group_id=group_id, topics=topics)]
    else:
        request.group_id, request.topics = group_id, topics
    response = await coordinators.call(group_id, OFFSET_FETCH, request, OffsetFetchResponse)
    answer = response.groups[0] if version >= _MANY_FROM else response
    coordinators.check(group_id, answer.error_code)
    found: dict[TopicPartition, OffsetAndMetadata] = {}
    for topic_answer in answer.topics:
        for each in topic_answer.partitions:
            name = TopicPartition(topic_answer.name, each.partition_index)
            coordinators.check(group_id, each.error_code, f"committed offset of {name}")
            if each.committed_offset >= 0:
                found[name] = OffsetAndMetadata(
                    each.committed_offset, each.metadata or "", each.committed_leader_epoch
                )
    return found


async def commit_offsets(
    coordinators: CoordinatorFinder,
    who: GroupMetadata,
    offsets: Mapping[TopicPartition, OffsetAndMetadata],
) -> list[TopicPartition]:
    """Commit these offsets in one attempt. Raises the first KafkaError, or Unreachable.

    The coordinator accepts or rejects each partition separately, and partitions without an error
    are committed. Partitions that the coordinator does not know are returned instead of raising an
    error, because a retry cannot bring back a deleted topic and must not delay the other partitions
    (see `unknown_partitions`).
    """
    request = OffsetCommitRequest(
        group_id=who.group_id,
        generation_id_or_member_epoch=who.generation,
        member_id=who.member_id,
        group_instance_id=who.instance_id,
        topics=[
            OffsetCommitTopic(name=name, partitions=own)
            for name, own in commit_entries(offsets, OffsetCommitPartition).items()
        ],
    )
    response = await coordinators.call(who.group_id, OFFSET_COMMIT, request, OffsetCommitResponse)
    return take_unknown(coordinators, who.group_id, response.topics)


async def topic_ids(
    coordinators: CoordinatorFinder, group_id: str, topics: Iterable[str]
) -> dict[str, bytes]:
    """Ask a group's coordinator for the ids of topics. Topics without an id are omitted.

    One attempt is made, with the errors of `commit_offsets`. Another broker might not respond, and
    would then delay the commits of the group.
    """
    request = MetadataRequest(
        topics=[MetadataRequestTopic(name=name) for name in sorted(topics)],
        allow_auto_topic_creation=False,
    )
    response = await coordinators.call(group_id, METADATA, request, MetadataResponse)
    return {
        topic.name or "": bytes(topic.topic_id)
        for topic in response.topics
        if any(topic.topic_id) and not topic.error_code
    }


def take_unknown(
    coordinators: CoordinatorFinder, group_id: str, topics: Iterable[AnsweredTopic]
) -> list[TopicPartition]:
    """Return the partitions that the coordinator does not know. Raises the first other error."""
    failed = _error_codes(topics)
    unknown = [name for name in failed if failed[name] == UnknownTopicOrPartition.code]
    for name in unknown:
        del failed[name]
    _raise_first(coordinators, group_id, failed)
    return unknown


def unknown_partitions(
    group_id: str,
    unknown: Sequence[TopicPartition],
    consequence: str = "all other offsets were committed",
) -> KafkaError:
    """Return the error to raise for a commit to partitions that do not exist."""
    shown = ", ".join(map(str, unknown[:_MOST_SHOWN]))
    rest = f" and {len(unknown) - _MOST_SHOWN} more" if len(unknown) > _MOST_SHOWN else ""
    return broker_error(
        UnknownTopicOrPartition.code,
        f"group {group_id!r}, {shown}{rest}",
        f"there is no such partition (was its topic deleted?); {consequence}",
    )


def commit_entries(
    offsets: Mapping[TopicPartition, OffsetAndMetadata], partition: type[P]
) -> dict[str, list[P]]:
    """Build the entries of the request, by topic, from instances of `partition`."""
    topics: dict[str, list[P]] = {}
    for (topic, number), committed in offsets.items():
        entry = partition(
            partition_index=number,
            committed_offset=committed.offset,
            committed_leader_epoch=committed.leader_epoch,
            committed_metadata=committed.metadata,
        )
        topics.setdefault(topic, []).append(entry)
    return topics


def raise_first(
    coordinators: CoordinatorFinder, group_id: str, topics: Iterable[AnsweredTopic]
) -> None:
    """Raise the error of the first partition that has an error. Permanent errors take precedence.

    If a retriable error were raised first, the caller would repeat the request and never see the
    permanent error.
    """
    _raise_first(coordinators, group_id, _error_codes(topics))


def _error_codes(topics: Iterable[AnsweredTopic]) -> dict[TopicPartition, int]:
    """Return the error codes of all partitions that have an error."""
    return {
        TopicPartition(topic.name, each.partition_index): each.error_code
        for topic in topics
        for each in topic.partitions
        if each.error_code
    }


def _raise_first(
    coordinators: CoordinatorFinder, group_id: str, failed: Mapping[TopicPartition, int]
) -> None:
    if failed:
        name = min(failed, key=lambda name: error_for_code(failed[name]).retriable)
        coordinators.check(group_id, failed[name], f"group {group_id!r}, partition {name}")


def as_offsets(
    offsets: Mapping[TopicPartition, OffsetAndMetadata | int],
) -> dict[TopicPartition, OffsetAndMetadata]:
    """Check offsets that the user passed, which may be plain numbers or have metadata."""
    return {
        name: OffsetAndMetadata(*arguments.offset(given, "offsets"))
        for name, given in arguments.by_partition(offsets, "offsets").items()
    }


def checked_group(group: GroupMetadata | str) -> GroupMetadata:
    """Return the group, given as a consumer's metadata or as a plain group id."""
    if not isinstance(group, GroupMetadata):
        return GroupMetadata(arguments.text(group, "group"))
    arguments.text(group.group_id, "group")
    arguments.text(group.member_id, "group")
    arguments.whole_number(group.generation, "group", least=-1, most=arguments.INT32_MAX)
    if group.instance_id is not None:
        arguments.text(group.instance_id, "group")
    return group
