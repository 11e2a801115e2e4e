"""ElectLeaders (key 43): run the preferred or unclean elections that a client
requests (KIP-460).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from barnabas.broker.context import Context
from barnabas.broker.controller.deadline import within
from barnabas.broker.outcome import Outcome
from barnabas.broker.pieces import Lists, in_pieces
from barnabas.errors import (
    ClusterAuthorizationFailed,
    InvalidRequest,
    KafkaError,
)
from barnabas.protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)
from barnabas.security.acl import CLUSTER_NAME
from barnabas.types import TopicPartition

_TELLS_ERROR = 1  # from this version on, the response has a top-level error code
_PREFERRED = 0
_UNCLEAN = 1

Outcomes = Mapping[TopicPartition, KafkaError | None]


_LISTS = Lists(("topic_partitions", "partitions"), ("replica_election_results", "partition_result"))


def handle(context: Context, request: ElectLeadersRequest) -> Outcome:
    return in_pieces(context, request, _LISTS, _handle)


def _handle(context: Context, request: ElectLeadersRequest) -> Outcome:
    partitions = None
    # Null requests an election for every partition in the cluster (KIP-460).
    if request.topic_partitions is not None:
        named = (
            TopicPartition(topic.topic, number)
            for topic in request.topic_partitions
            for number in topic.partitions
        )
        partitions = list(dict.fromkeys(named))
    if not context.is_allowed(CLUSTER_NAME):
        return _refusal(context, partitions, ClusterAuthorizationFailed())
    # A version 0 request has no election type and always runs a preferred election (KIP-183).
    if request.election_type not in (_PREFERRED, _UNCLEAN):
        kind = request.election_type
        return _refusal(context, partitions, InvalidRequest(f"unknown election type {kind}"))
    return _elect(context, request, partitions)


async def _elect(
    context: Context, request: ElectLeadersRequest, partitions: Sequence[TopicPartition] | None
) -> ElectLeadersResponse:
    is_unclean = request.election_type == _UNCLEAN
    election = context.node.controller.elect_leaders(partitions, unclean=is_unclean)
    try:
        outcomes = await within(request.timeout_ms, election)
    except KafkaError as error:
        return _refusal(context, partitions, error)
    return _answer(outcomes)


def _refusal(
    context: Context, partitions: Sequence[TopicPartition] | None, error: KafkaError
) -> ElectLeadersResponse:
    response = _answer(dict.fromkeys(partitions or (), error))
    if context.version >= _TELLS_ERROR:
        response.error_code = error.code
    return response


def _answer(outcomes: Outcomes) -> ElectLeadersResponse:
    topics: dict[str, ReplicaElectionResult] = {}
    for name, error in outcomes.items():
        topic = topics.setdefault(name.topic, ReplicaElectionResult(topic=name.topic))
        result = PartitionResult(partition_id=name.partition)
        if error is not None:
            result.error_code, result.error_message = error.code, str(error)
        topic.partition_result.append(result)
    return ElectLeadersResponse(replica_election_results=list(topics.values()))
