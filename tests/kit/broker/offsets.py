"""Offsets of groups, committed, fetched and deleted over a raw connection."""

from __future__ import annotations

from typing import Any

from barnabas.protocol.api import OFFSET_COMMIT, OFFSET_DELETE, OFFSET_FETCH
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
from barnabas.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchTopic
from tests.kit.raw_client import RawClient, once_loaded


def commit(
    client: RawClient,
    group_id: str,
    offsets: dict[tuple[str, int], int],
    version: int = 9,
    metadata: str | None = "",
    **fields: Any,
) -> dict[tuple[str, int], int]:
    """The error codes of a commit, by partition; -1 leaves out the generation."""
    topics: dict[str, OffsetCommitTopic] = {}
    for (topic, partition), offset in offsets.items():
        one = OffsetCommitPartition(
            partition_index=partition, committed_offset=offset, committed_metadata=metadata
        )
        topics.setdefault(topic, OffsetCommitTopic(name=topic)).partitions.append(one)
    request = OffsetCommitRequest(group_id=group_id, topics=list(topics.values()), **fields)
    answer = client.call(OFFSET_COMMIT, version, request)
    names = [topic.name for topic in answer.topics]
    assert len(set(names)) == len(names)
    return {
        (topic.name, partition.partition_index): partition.error_code
        for topic in answer.topics
        for partition in topic.partitions
    }


def committed(client: RawClient, group_id: str, topic: str, *numbers: int) -> list[int]:
    """The offsets that OffsetFetch answers for these partitions."""
    wanted = [OffsetFetchTopic(name=topic, partition_indexes=list(numbers))]
    request = OffsetFetchRequest(group_id=group_id, topics=wanted)
    answer = once_loaded(
        lambda: client.call(OFFSET_FETCH, 5, request), lambda partition: int(partition.error_code)
    )
    assert answer.error_code == 0
    return [partition.committed_offset for partition in answer.topics[0].partitions]


def delete(
    client: RawClient, group_id: str, *places: tuple[str, int]
) -> tuple[int, dict[tuple[str, int], int]]:
    """The error code of the request, and those of the partitions."""
    topics: dict[str, OffsetDeleteTopic] = {}
    for topic, partition in places:
        listed = topics.setdefault(topic, OffsetDeleteTopic(name=topic)).partitions
        listed.append(OffsetDeletePartition(partition_index=partition))
    request = OffsetDeleteRequest(group_id=group_id, topics=list(topics.values()))
    answer = client.call(OFFSET_DELETE, 0, request)
    return answer.error_code, {
        (topic.name, partition.partition_index): partition.error_code
        for topic in answer.topics
        for partition in topic.partitions
    }
