"""AlterPartitionReassignments (key 45): start or cancel reassignments (KIP-455, RE-13).

The response says which reassignments have started, and why others have not.
ListPartitionReassignments reports their progress.
"""

from __future__ import annotations

from collections.abc import Mapping

from barnabas.broker.context import Context
from barnabas.broker.controller.deadline import within
from barnabas.broker.outcome import Outcome
from barnabas.broker.pieces import Lists, in_pieces
from barnabas.errors import ClusterAuthorizationFailed, KafkaError
from barnabas.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from barnabas.security.acl import CLUSTER_NAME
from barnabas.types import TopicPartition

Outcomes = Mapping[TopicPartition, KafkaError | None]


_LISTS = Lists(("topics", "partitions"), ("responses", "partitions"))


def handle(context: Context, request: AlterPartitionReassignmentsRequest) -> Outcome:
    return in_pieces(context, request, _LISTS, _handle)


def _handle(context: Context, request: AlterPartitionReassignmentsRequest) -> Outcome:
    if not context.is_allowed(CLUSTER_NAME):
        return _denial(request)
    return _reassign(context, request)


async def _reassign(
    context: Context, request: AlterPartitionReassignmentsRequest
) -> AlterPartitionReassignmentsResponse:
    wanted = {
        TopicPartition(topic.name, each.partition_index): (
            None if each.replicas is None else tuple(each.replicas)
        )
        for topic in request.topics
        for each in topic.partitions
    }
    try:
        work = context.node.controller.reassign(wanted)
        outcomes = await within(request.timeout_ms, work)
    except KafkaError as error:
        return _failure(error)
    return AlterPartitionReassignmentsResponse(responses=_results(outcomes))


def _denial(request: AlterPartitionReassignmentsRequest) -> AlterPartitionReassignmentsResponse:
    """Build the response to an unauthorized client. The error is repeated in every row."""
    error = ClusterAuthorizationFailed("not allowed to reassign partitions")
    answer = _failure(error)
    answer.responses = _results(
        {
            TopicPartition(topic.name, each.partition_index): error
            for topic in request.topics
            for each in topic.partitions
        }
    )
    return answer


def _failure(error: KafkaError) -> AlterPartitionReassignmentsResponse:
    return AlterPartitionReassignmentsResponse(error_code=error.code, error_message=str(error))


def _results(outcomes: Outcomes) -> list[ReassignableTopicResponse]:
    topics: dict[str, ReassignableTopicResponse] = {}
    for name, error in outcomes.items():
        topic = topics.setdefault(name.topic, ReassignableTopicResponse(name=name.topic))
        result = ReassignablePartitionResponse(partition_index=name.partition)
        if error is not None:
            result.error_code, result.error_message = error.code, str(error)
        topic.partitions.append(result)
    return list(topics.values())
