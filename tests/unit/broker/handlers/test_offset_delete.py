"""OffsetDelete: a group forgets (KIP-496)."""

from __future__ import annotations

from barnabas.errors import (
    GroupAuthorizationFailed,
    GroupIdNotFound,
    InvalidGroupId,
    TopicAuthorizationFailed,
    UnknownTopicOrPartition,
)
from barnabas.protocol.api import OFFSET_DELETE
from barnabas.protocol.messages.offset_delete import (
    OffsetDeletePartition,
    OffsetDeleteRequest,
    OffsetDeleteTopic,
)
from tests.kit.raw_client import RawClient
from tests.unit.broker.conftest import create
from tests.unit.broker.handlers.test_offset_commit import (  # noqa: F401  (fixtures)
    _coordinator,
    commit,
    committed,
    deny,
)


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
        (topic.name, told.partition_index): told.error_code
        for topic in answer.topics
        for told in topic.partitions
    }


def test_deleted_offsets_are_gone_and_others_are_not(client: RawClient, topic: str) -> None:
    commit(client, "g", {(topic, 0): 1, (topic, 1): 2})
    assert delete(client, "g", (topic, 0)) == (0, {(topic, 0): 0})
    assert committed(client, "g", topic, 0, 1) == [-1, 2]
    assert delete(client, "g", (topic, 0)) == (0, {(topic, 0): 0})


def test_a_group_goes_with_its_last_offset(client: RawClient, topic: str) -> None:
    commit(client, topic, {(topic, 0): 1})
    assert delete(client, topic, (topic, 0), (topic, 1)) == (0, {(topic, 0): 0, (topic, 1): 0})
    assert delete(client, topic, (topic, 0)) == (GroupIdNotFound.code, {})


def test_what_does_not_exist(client: RawClient, topic: str) -> None:
    commit(client, topic, {(topic, 0): 1})
    unknown = UnknownTopicOrPartition.code
    assert delete(client, topic, (topic, 9), ("no-such-topic", 0), (topic, 1)) == (
        0,
        {(topic, 1): 0, (topic, 9): unknown, ("no-such-topic", 0): unknown},
    )
    assert committed(client, topic, topic, 0) == [1]
    assert delete(client, "no-such-group", (topic, 9)) == (GroupIdNotFound.code, {})
    assert delete(client, "", (topic, 0)) == (InvalidGroupId.code, {})


def test_what_the_caller_may_not(client: RawClient, topic: str, deny) -> None:  # type: ignore[no-untyped-def] # noqa: F811
    """SE-1."""
    hidden = f"{topic}-hidden"
    create(client, hidden)
    commit(client, topic, {(topic, 0): 1, (hidden, 0): 1})
    deny(hidden, "secret")
    assert delete(client, "secret", (topic, 0)) == (GroupAuthorizationFailed.code, {})
    assert delete(client, topic, (hidden, 0), (topic, 0)) == (
        0,
        {(topic, 0): 0, (hidden, 0): TopicAuthorizationFailed.code},
    )
    deny()
    assert committed(client, topic, hidden, 0) == [1]
