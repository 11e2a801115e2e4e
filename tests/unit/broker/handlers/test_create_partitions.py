"""CreatePartitions: topics grow, in every version, and what is refused with which error."""

from __future__ import annotations

import pytest

from barnabas.errors import (
    InvalidPartitions,
    InvalidReplicaAssignment,
    InvalidRequest,
    RequestTimedOut,
    UnknownTopicOrPartition,
)
from barnabas.protocol.api import CREATE_PARTITIONS, FETCH, METADATA
from barnabas.protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.kit.broker.fetches import fetch_request, only, values
from tests.kit.broker.produces import fill
from tests.kit.broker.topics import create
from tests.kit.raw_client import RawClient, batch

LATEST = CREATE_PARTITIONS.max_version


def wanted(
    name: str, count: int, assignments: list[list[int]] | None = None
) -> CreatePartitionsTopic:
    given = None
    if assignments is not None:
        given = [CreatePartitionsAssignment(broker_ids=brokers) for brokers in assignments]
    return CreatePartitionsTopic(name=name, count=count, assignments=given)


def ask(
    client: RawClient, *topics: CreatePartitionsTopic, version: int = LATEST, **fields: object
) -> list[CreatePartitionsTopicResult]:
    request = CreatePartitionsRequest(topics=list(topics), **({"timeout_ms": 5000} | fields))
    answer = client.call(CREATE_PARTITIONS, version, request)
    return list(answer.results)


def partitions_of(client: RawClient, topic: str) -> dict[int, int]:
    """Leaders by partition."""
    request = MetadataRequest(topics=[MetadataRequestTopic(name=topic)])
    found = client.call(METADATA, 9, request).topics[0].partitions
    return {each.partition_index: each.leader_id for each in found}


@pytest.mark.parametrize("version", range(LATEST + 1))
def test_a_topic_grows_in_every_version(client: RawClient, topic: str, version: int) -> None:
    """TP-5: the new ones are led and empty, and no record has moved."""
    fill(client, topic, batch(b"a", b"b"))
    (result,) = ask(client, wanted(topic, 5), version=version)
    assert (result.name, result.error_code, result.error_message) == (topic, 0, None)
    assert partitions_of(client, topic) == dict.fromkeys(range(5), 0)
    for partition, records in ((0, [b"a", b"b"]), (4, [])):
        found = client.call(FETCH, 11, fetch_request(topic, partition=partition))
        assert values(only(found)) == records


def test_what_is_refused(client: RawClient, topic: str) -> None:
    """TP-5"""
    for count in (2, 1, 0, -1):
        (result,) = ask(client, wanted(topic, count))
        assert result.error_code == InvalidPartitions.code, count
        assert topic in (result.error_message or "")
    (unknown,) = ask(client, wanted("no-such-topic", 3))
    assert unknown.error_code == UnknownTopicOrPartition.code
    for assignments in ([[1]], [[0, 0]], [[]], [[0], [0]], []):
        (result,) = ask(client, wanted(topic, 3, assignments))
        assert result.error_code == InvalidReplicaAssignment.code, assignments
    assert len(partitions_of(client, topic)) == 2


def test_replicas_can_be_given(client: RawClient, topic: str) -> None:
    (result,) = ask(client, wanted(topic, 4, [[0], [0]]))
    assert result.error_code == 0
    assert len(partitions_of(client, topic)) == 4


def test_each_topic_has_its_own_answer(client: RawClient, topic: str) -> None:
    create(client, f"{topic}-2")
    results = ask(
        client,
        wanted(topic, 3),
        wanted("no-such-topic", 3),
        wanted(f"{topic}-2", 2),
        wanted("twice", 2),
        wanted("twice", 3),
    )
    assert [(each.name, each.error_code) for each in results] == [
        (topic, 0),
        ("no-such-topic", UnknownTopicOrPartition.code),
        (f"{topic}-2", 0),
        ("twice", InvalidRequest.code),
    ]


def test_validation_alone_makes_nothing(client: RawClient, topic: str) -> None:
    (fine,) = ask(client, wanted(topic, 9), validate_only=True)
    (refused,) = ask(client, wanted(topic, 1), validate_only=True)
    assert (fine.error_code, refused.error_code) == (0, InvalidPartitions.code)
    assert len(partitions_of(client, topic)) == 2


def test_a_timeout_of_0_reports_what_is_refused_and_no_success(
    client: RawClient, topic: str
) -> None:
    """What librdkafka's `operation.timeout` of 0 counts on."""
    begun, refused = ask(client, wanted(topic, 3), wanted("no-such-topic", 3), timeout_ms=0)
    assert begun.error_code == RequestTimedOut.code
    assert refused.error_code == UnknownTopicOrPartition.code
    assert len(partitions_of(client, topic)) == 3
