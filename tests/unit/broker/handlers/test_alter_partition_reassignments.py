"""AlterPartitionReassignments on a lone broker: what is refused, and what is done already."""

from __future__ import annotations

from typing import Any

from barnabas import Broker
from barnabas.errors import (
    ClusterAuthorizationFailed,
    InvalidReplicaAssignment,
    NoReassignmentInProgress,
    UnknownTopicOrPartition,
)
from barnabas.protocol.api import ALTER_PARTITION_REASSIGNMENTS
from barnabas.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from tests.kit.broker.group_calls import allowing
from tests.kit.raw_client import RawClient


def ask(client: RawClient, topics: dict[str, dict[int, list[int] | None]]) -> Any:
    request = AlterPartitionReassignmentsRequest(timeout_ms=60_000)
    for name, wanted in topics.items():
        partitions = [
            ReassignablePartition(partition_index=number, replicas=replicas)
            for number, replicas in wanted.items()
        ]
        request.topics.append(ReassignableTopic(name=name, partitions=partitions))
    return client.call(ALTER_PARTITION_REASSIGNMENTS, 0, request)


def codes(answer: Any) -> dict[tuple[str, int], int]:
    assert (answer.error_code, answer.error_message) == (0, "")
    for topic in answer.responses:
        for each in topic.partitions:
            assert (each.error_message is None) == (each.error_code == 0)
    return {
        (topic.name, each.partition_index): each.error_code
        for topic in answer.responses
        for each in topic.partitions
    }


def test_each_partition_has_its_own_answer(client: RawClient, topic: str) -> None:
    """RE-13"""
    answer = ask(client, {topic: {0: [0], 1: None, 9: [0]}, "no-such-topic": {0: [0]}})
    assert codes(answer) == {
        (topic, 0): 0,
        (topic, 1): NoReassignmentInProgress.code,
        (topic, 9): UnknownTopicOrPartition.code,
        ("no-such-topic", 0): UnknownTopicOrPartition.code,
    }


def test_replicas_that_cannot_be(client: RawClient, topic: str) -> None:
    for replicas in ([5], [0, 5], [0, 0], [], [-1]):
        answer = ask(client, {topic: {0: replicas}})
        assert codes(answer) == {(topic, 0): InvalidReplicaAssignment.code}, replicas


def test_nothing_asked_nothing_answered(client: RawClient) -> None:
    assert codes(ask(client, {})) == {}


def test_who_may_not(node: Broker, client: RawClient, topic: str) -> None:
    with allowing(node, topic):
        answer = ask(client, {topic: {0: [0]}})
    assert answer.error_code == ClusterAuthorizationFailed.code
    assert answer.error_message
    assert answer.responses == []
