"""Topics that a client has asked any broker about: created by the controller, wherever that is."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from barnabas import Cluster
from barnabas.cluster.layout import GROUP_TOPIC
from barnabas.protocol.api import CREATE_TOPICS, FIND_COORDINATOR, METADATA
from barnabas.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest
from barnabas.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from tests.kit.raw_client import RawClient, once_found

NOT_CONTROLLER = 41


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """Broker 1 is the controller."""
    config = {"num.partitions": "3", "default.replication.factor": "2"}
    with Cluster(3, config=config) as made:
        yield made


@pytest.fixture
def other(cluster: Cluster) -> Iterator[RawClient]:
    """A client of broker 2."""
    with RawClient(cluster.bootstrap_servers.split(",")[1]) as client:
        yield client


def _ask(client: RawClient, name: str) -> MetadataResponse:
    request = MetadataRequest(topics=[MetadataRequestTopic(name=name)])
    answer = client.call(METADATA, 9, request)
    assert isinstance(answer, MetadataResponse)
    return answer


def test_a_topic_is_made_by_asking_a_broker_that_is_not_the_controller(other: RawClient) -> None:
    """TP-6: it is in the answer, with its leaders."""
    answer = _ask(other, "t")
    assert answer.controller_id == 1
    (topic,) = answer.topics
    assert topic.error_code == 0
    assert [each.error_code for each in topic.partitions] == [0, 0, 0]
    assert {len(each.replica_nodes) for each in topic.partitions} == {2}
    assert len({each.leader_id for each in topic.partitions}) == 3
    (again,) = _ask(other, "t").topics
    assert again.topic_id == topic.topic_id


def test_a_coordinators_topic_is_made_wherever_it_is_asked_for(
    cluster: Cluster, other: RawClient
) -> None:
    """TP-8"""
    request = FindCoordinatorRequest(coordinator_keys=["g"])
    found = once_found(lambda: other.call(FIND_COORDINATOR, 4, request).coordinators[0])
    assert found.error_code == 0
    topic = cluster.server(2).node.image.topics[GROUP_TOPIC]
    assert {len(each.replicas) for each in topic.partitions.values()} == {3}


def test_only_the_controller_creates(other: RawClient) -> None:
    """TP-1: a client of another broker gets NOT_CONTROLLER."""
    wanted = CreatableTopic(name="u", num_partitions=1, replication_factor=1)
    answer = other.call(CREATE_TOPICS, 5, CreateTopicsRequest(topics=[wanted], timeout_ms=60_000))
    assert [each.error_code for each in answer.topics] == [NOT_CONTROLLER]
