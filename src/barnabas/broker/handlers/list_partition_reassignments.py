"""ListPartitionReassignments (key 46): list ongoing reassignments and their replicas (KIP-455)."""

from __future__ import annotations

from barnabas.broker.context import Context
from barnabas.broker.outcome import Outcome
from barnabas.broker.pieces import Lists, in_pieces
from barnabas.errors import ClusterAuthorizationFailed, KafkaError
from barnabas.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
from barnabas.security.acl import CLUSTER_NAME
from barnabas.types import TopicPartition

_LISTS = Lists(("topics", "partition_indexes"), ("topics", "partitions"))


def handle(context: Context, request: ListPartitionReassignmentsRequest) -> Outcome:
    return in_pieces(context, request, _LISTS, _handle)


def _handle(context: Context, request: ListPartitionReassignmentsRequest) -> Outcome:
    try:
        if not context.is_allowed(CLUSTER_NAME):
            raise ClusterAuthorizationFailed("not allowed to list reassignments")
        return ListPartitionReassignmentsResponse(topics=_ongoing(context, request))
    except KafkaError as error:
        return ListPartitionReassignmentsResponse(error_code=error.code, error_message=str(error))


def _ongoing(
    context: Context, request: ListPartitionReassignmentsRequest
) -> list[OngoingTopicReassignment]:
    # Null requests all ongoing reassignments (KIP-455).
    wanted = None
    if request.topics is not None:
        named = (
            TopicPartition(topic.name, number)
            for topic in request.topics
            for number in topic.partition_indexes
        )
        wanted = list(dict.fromkeys(named))
    topics: dict[str, OngoingTopicReassignment] = {}
    for name, partition in context.node.controller.reassignments(wanted).items():
        topic = topics.setdefault(name.topic, OngoingTopicReassignment(name=name.topic))
        topic.partitions.append(
            OngoingPartitionReassignment(
                partition_index=name.partition,
                replicas=list(partition.replicas),
                adding_replicas=list(partition.adding),
                removing_replicas=list(partition.removing),
            )
        )
    return list(topics.values())
