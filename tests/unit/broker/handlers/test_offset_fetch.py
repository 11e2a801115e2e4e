"""OffsetFetch: what one group has committed, or several (GC-3, KIP-447, KIP-709)."""

from __future__ import annotations

import pytest

from barnabas import Broker
from barnabas.errors import (
    CoordinatorNotAvailable,
    GroupAuthorizationFailed,
    TopicAuthorizationFailed,
    UnsupportedVersion,
)
from barnabas.protocol.api import OFFSET_COMMIT, OFFSET_FETCH
from barnabas.protocol.messages.offset_commit import (
    OffsetCommitPartition,
    OffsetCommitRequest,
    OffsetCommitTopic,
)
from barnabas.protocol.messages.offset_fetch import (
    OffsetFetchGroup,
    OffsetFetchPartitionResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchTopic,
)
from tests.kit.broker.offsets import commit
from tests.kit.broker.topics import create
from tests.kit.raw_client import RawClient

pytestmark = pytest.mark.usefixtures("offsets_topic")

BATCHED = 8


def wanted(topic: str, *numbers: int) -> list[OffsetFetchTopic]:
    return [OffsetFetchTopic(name=topic, partition_indexes=list(numbers))]


def fetch(
    client: RawClient, version: int, group_id: str, topics: list[OffsetFetchTopic] | None
) -> OffsetFetchResponse:
    """As of one group, whatever the version: its topics and its error."""
    if version < BATCHED:
        request = OffsetFetchRequest(group_id=group_id, topics=topics)
        return client.call(OFFSET_FETCH, version, request)
    group = OffsetFetchGroup(group_id=group_id, topics=topics)
    answer = client.call(OFFSET_FETCH, version, OffsetFetchRequest(groups=[group]))
    (only,) = answer.groups
    assert only.group_id == group_id
    return OffsetFetchResponse(topics=only.topics, error_code=only.error_code)


def by_partition(
    answer: OffsetFetchResponse,
) -> dict[tuple[str, int], OffsetFetchPartitionResponse]:
    return {
        (topic.name, one.partition_index): one
        for topic in answer.topics
        for one in topic.partitions
    }


@pytest.mark.parametrize("version", range(1, OFFSET_FETCH.max_version + 1))
def test_named_partitions_in_every_version(client: RawClient, topic: str, version: int) -> None:
    commit(client, "g", {(topic, 1): 7}, metadata="note")
    answer = by_partition(fetch(client, version, "g", wanted(topic, 0, 1)))
    assert [one.error_code for one in answer.values()] == [0, 0]
    never, one = answer[topic, 0], answer[topic, 1]
    assert (never.committed_offset, never.metadata, never.committed_leader_epoch) == (-1, "", -1)
    assert (one.committed_offset, one.metadata) == (7, "note")


@pytest.mark.parametrize("version", range(2, OFFSET_FETCH.max_version + 1))
def test_all_offsets_of_a_group(client: RawClient, topic: str, version: int) -> None:
    create(client, f"{topic}-too")
    commit(client, topic, {(topic, 1): 7, (f"{topic}-too", 0): 3})
    answer = fetch(client, version, topic, None)
    assert answer.error_code == 0
    assert {place: one.committed_offset for place, one in by_partition(answer).items()} == {
        (topic, 1): 7,
        (f"{topic}-too", 0): 3,
    }
    assert fetch(client, version, "no-such-group", None).topics == []


@pytest.mark.parametrize("version", [5, OFFSET_FETCH.max_version])
def test_leader_epochs(client: RawClient, topic: str, version: int) -> None:
    """KIP-320."""
    one = OffsetCommitPartition(
        partition_index=0, committed_offset=1, committed_leader_epoch=4, committed_metadata=""
    )
    request = OffsetCommitRequest(
        group_id="g", topics=[OffsetCommitTopic(name=topic, partitions=[one])]
    )
    client.call(OFFSET_COMMIT, 9, request)
    (answer,) = by_partition(fetch(client, version, "g", wanted(topic, 0))).values()
    assert answer.committed_leader_epoch == 4


def test_several_groups_at_once(client: RawClient, topic: str) -> None:
    """KIP-709: each has its own answer, in order, wherever its shard is."""
    names = [f"{topic}-{n}" for n in range(20)]
    for n, name in enumerate(names[:-1]):
        commit(client, name, {(topic, 0): n})
    groups = [OffsetFetchGroup(group_id=name, topics=None) for name in names]
    answer = client.call(OFFSET_FETCH, 9, OffsetFetchRequest(groups=groups, require_stable=True))
    assert [group.group_id for group in answer.groups] == names
    assert [group.error_code for group in answer.groups] == [0] * 20
    offsets = [group.topics[0].partitions[0].committed_offset for group in answer.groups[:-1]]
    assert offsets == list(range(19))
    assert answer.groups[-1].topics == []
    assert client.call(OFFSET_FETCH, 9, OffsetFetchRequest(groups=[])).groups == []


@pytest.mark.parametrize("version", [1, 2, 7, 9])
def test_what_the_caller_may_not(client: RawClient, topic: str, deny, version: int) -> None:  # type: ignore[no-untyped-def]
    """SE-1: hidden topics are not among all offsets; a version has its own place for errors."""
    hidden = f"{topic}-hidden"
    create(client, hidden)
    commit(client, topic, {(topic, 0): 1, (hidden, 0): 2})
    deny(hidden, "secret")
    named = [*wanted(hidden, 0), *wanted(topic, 0)]
    answer = fetch(client, version, topic, named)
    assert answer.error_code == 0
    assert {place[0]: one.error_code for place, one in by_partition(answer).items()} == {
        topic: 0,
        hidden: TopicAuthorizationFailed.code,
    }
    if version > 1:
        assert [one.name for one in fetch(client, version, topic, None).topics] == [topic]
    refused = fetch(client, version, "secret", wanted(topic, 0))
    assert refused.topics == []
    if version > 1:  # before, there is no place for it, and Kafka does not say it either
        assert refused.error_code == GroupAuthorizationFailed.code


def test_offsets_in_zookeeper_are_refused(client: RawClient, topic: str) -> None:
    answer = fetch(client, 0, "g", wanted(topic, 0))
    assert by_partition(answer)[topic, 0].error_code == UnsupportedVersion.code


def test_without_an_offsets_topic_there_is_no_coordinator() -> None:
    with Broker() as broker, RawClient(broker.bootstrap_servers) as client:
        answer = fetch(client, 9, "g", None)
        assert answer.error_code == CoordinatorNotAvailable.code
        first = fetch(client, 1, "g", wanted("t", 0))
        assert by_partition(first)["t", 0].error_code == CoordinatorNotAvailable.code


@pytest.mark.parametrize("version", [1, 7, 8, 9])
def test_what_is_named_twice_is_answered_once(client: RawClient, topic: str, version: int) -> None:
    """Kilobytes of metadata would come for each four bytes of the request."""
    commit(client, "g", {(topic, 0): 7, (topic, 1): 8}, metadata="m" * 1000)
    named = [*wanted(topic, 0, 0, 1), *wanted(topic, 1, 0)]
    (found,) = fetch(client, version, "g", named).topics
    assert [one.committed_offset for one in found.partitions] == [7, 8]


def test_a_group_named_twice_is_answered_once(client: RawClient, topic: str) -> None:
    commit(client, topic, {(topic, 0): 7, (topic, 1): 8})
    first = OffsetFetchGroup(group_id=topic, topics=wanted(topic, 0))
    second = OffsetFetchGroup(group_id=topic, topics=wanted(topic, 1))
    (answer,) = client.call(OFFSET_FETCH, 9, OffsetFetchRequest(groups=[first, second])).groups
    assert [one.committed_offset for one in answer.topics[0].partitions] == [7, 8]
    every = OffsetFetchGroup(group_id=topic, topics=None)
    request = OffsetFetchRequest(groups=[every, first, every])
    assert client.call(OFFSET_FETCH, 9, request).groups == [answer]
