"""ElectLeaders on a lone broker: there is no other broker to elect."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from barnabas import Broker
from barnabas.errors import (
    ClusterAuthorizationFailed,
    ElectionNotNeeded,
    InvalidRequest,
    PreferredLeaderNotAvailable,
    UnknownTopicOrPartition,
)
from barnabas.protocol.api import ELECT_LEADERS
from barnabas.protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from tests.kit.broker.cluster_calls import rewrite_topic
from tests.kit.broker.group_calls import allowing
from tests.kit.broker.topics import create
from tests.kit.raw_client import RawClient

LATEST = ELECT_LEADERS.max_version


def ask(
    client: RawClient, *names: tuple[str, list[int]], kind: int = 0, version: int = LATEST
) -> Any:
    topics = [TopicPartitions(topic=topic, partitions=numbers) for topic, numbers in names]
    request = ElectLeadersRequest(topic_partitions=topics, timeout_ms=60_000)
    if version >= 1:
        request.election_type = kind
    return client.call(ELECT_LEADERS, version, request)


def codes(answer: Any) -> dict[tuple[str, int], int]:
    for topic in answer.replica_election_results:
        for each in topic.partition_result:
            assert (each.error_message is None) == (each.error_code == 0)
    return {
        (topic.topic, each.partition_id): each.error_code
        for topic in answer.replica_election_results
        for each in topic.partition_result
    }


@pytest.mark.parametrize("version", range(LATEST + 1))
@pytest.mark.parametrize("kind", [0, 1])
def test_each_partition_has_its_own_answer(
    client: RawClient, topic: str, version: int, kind: int
) -> None:
    """RE-13"""
    unknown = UnknownTopicOrPartition.code
    answer = ask(client, (topic, [0, 7, 0]), ("no-such-topic", [0]), kind=kind, version=version)
    assert answer.error_code == 0
    assert codes(answer) == {
        (topic, 0): ElectionNotNeeded.code,
        (topic, 7): unknown,
        ("no-such-topic", 0): unknown,
    }


def test_no_partition_is_not_all_of_them(tmp_path: Path) -> None:
    """Of all, as in Kafka, only those are answered whose leader is not the preferred one."""
    with Broker(tmp_path) as broker, RawClient(broker.bootstrap_servers) as client:
        create(client, "t", 2)
    rewrite_topic(tmp_path, "t", lambda node: node._replace(replicas={**node.replicas, 1: (7, 0)}))
    with Broker(tmp_path) as broker, RawClient(broker.bootstrap_servers) as client:
        request = ElectLeadersRequest(topic_partitions=None, timeout_ms=60_000)
        answer: Any = client.call(ELECT_LEADERS, LATEST, request)
        assert answer.error_code == 0
        assert codes(answer) == {("t", 1): PreferredLeaderNotAvailable.code}
        answer = ask(client)
        assert (answer.error_code, answer.replica_election_results) == (0, [])


def test_an_election_of_a_kind_that_there_is_not(client: RawClient, topic: str) -> None:
    answer = ask(client, (topic, [0]), kind=2)
    assert answer.error_code == InvalidRequest.code
    assert codes(answer) == {(topic, 0): InvalidRequest.code}


@pytest.mark.parametrize("version", range(LATEST + 1))
def test_who_may_not(node: Broker, client: RawClient, topic: str, version: int) -> None:
    with allowing(node, topic):
        answer = ask(client, (topic, [0]), version=version)
    assert answer.error_code == (ClusterAuthorizationFailed.code if version else 0)
    assert codes(answer) == {(topic, 0): ClusterAuthorizationFailed.code}
