"""ListPartitionReassignments: what moves, with where it comes from and where it goes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from barnabas import Broker
from barnabas.cluster.layout import TopicNode
from barnabas.errors import ClusterAuthorizationFailed
from barnabas.protocol.api import LIST_PARTITION_REASSIGNMENTS
from barnabas.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from tests.kit.broker.cluster_calls import rewrite_topic
from tests.kit.broker.group_calls import allowing
from tests.kit.broker.reassignments import alter, codes
from tests.kit.broker.topics import create
from tests.kit.raw_client import RawClient


def ask(client: RawClient, topics: dict[str, list[int]] | None) -> Any:
    wanted = None
    if topics is not None:
        wanted = [
            ListPartitionReassignmentsTopics(name=name, partition_indexes=numbers)
            for name, numbers in topics.items()
        ]
    request = ListPartitionReassignmentsRequest(topics=wanted)
    return client.call(LIST_PARTITION_REASSIGNMENTS, 0, request)


def moves(answer: Any) -> dict[tuple[str, int], tuple[list[int], list[int], list[int]]]:
    assert (answer.error_code, answer.error_message) == (0, "")
    return {
        (topic.name, each.partition_index): (
            each.replicas,
            each.adding_replicas,
            each.removing_replicas,
        )
        for topic in answer.topics
        for each in topic.partitions
    }


def test_nothing_moves(client: RawClient, topic: str) -> None:
    assert moves(ask(client, None)) == {}
    assert moves(ask(client, {topic: [0, 1, 7], "no-such-topic": [0]})) == {}


def test_who_may_not(node: Broker, client: RawClient, topic: str) -> None:
    with allowing(node, topic):
        answer = ask(client, None)
    assert answer.error_code == ClusterAuthorizationFailed.code
    assert answer.error_message


def to_a_dead_broker(node: TopicNode) -> TopicNode:
    """Partition 1 goes from here to broker 7."""
    replicas = {**node.replicas, 1: (0, 7)}
    return node._replace(replicas=replicas, adding={1: (7,)}, removing={1: (0,)})


def test_a_reassignment_is_listed_until_it_is_cancelled(tmp_path: Path) -> None:
    """RE-13"""
    with Broker(tmp_path) as broker, RawClient(broker.bootstrap_servers) as client:
        create(client, "t", 2)
    rewrite_topic(tmp_path, "t", to_a_dead_broker)
    with Broker(tmp_path) as broker, RawClient(broker.bootstrap_servers) as client:
        expected = {("t", 1): ([0, 7], [7], [0])}
        assert moves(ask(client, None)) == expected
        assert moves(ask(client, {"t": [0, 1], "u": [1]})) == expected
        assert moves(ask(client, {"t": [0]})) == {}
        assert moves(ask(client, {})) == {}
        assert codes(alter(client, {"t": {1: None}})) == {("t", 1): 0}
        assert moves(ask(client, None)) == {}
