"""AlterPartitionReassignments on a lone broker: what is refused, and what is done already."""

from __future__ import annotations

from barnabas import Broker
from barnabas.errors import (
    ClusterAuthorizationFailed,
    InvalidReplicaAssignment,
    NoReassignmentInProgress,
    UnknownTopicOrPartition,
)
from tests.kit.broker.group_calls import allowing
from tests.kit.broker.reassignments import alter, codes
from tests.kit.raw_client import RawClient


def test_each_partition_has_its_own_answer(client: RawClient, topic: str) -> None:
    """RE-13"""
    answer = alter(client, {topic: {0: [0], 1: None, 9: [0]}, "no-such-topic": {0: [0]}})
    assert codes(answer) == {
        (topic, 0): 0,
        (topic, 1): NoReassignmentInProgress.code,
        (topic, 9): UnknownTopicOrPartition.code,
        ("no-such-topic", 0): UnknownTopicOrPartition.code,
    }


def test_replicas_that_cannot_be(client: RawClient, topic: str) -> None:
    for replicas in ([5], [0, 5], [0, 0], [], [-1]):
        answer = alter(client, {topic: {0: replicas}})
        assert codes(answer) == {(topic, 0): InvalidReplicaAssignment.code}, replicas


def test_nothing_asked_nothing_answered(client: RawClient) -> None:
    assert codes(alter(client, {})) == {}


def test_who_may_not(node: Broker, client: RawClient, topic: str) -> None:
    with allowing(node, topic):
        answer = alter(client, {topic: {0: [0]}})
    assert answer.error_code == ClusterAuthorizationFailed.code
    assert answer.error_message
    ((row,),) = [each.partitions for each in answer.responses]
    assert row.error_code == ClusterAuthorizationFailed.code
