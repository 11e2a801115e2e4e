"""OffsetForLeaderEpoch (key 23): find the end offset of a leader epoch, to detect truncation.

Followers send this request, and so do consumers after a leader change, to find out whether the
records that they have read still exist (KIP-320). If the epoch has no records, the response
contains the previous epoch. If this leader does not know the epoch yet, the response contains -1
and -1.
"""

from __future__ import annotations

from barnabas.broker.context import Context
from barnabas.broker.outcome import Outcome
from barnabas.broker.runtime.slices import Pace, Slices, run_slices
from barnabas.errors import (
    KafkaError,
    TopicAuthorizationFailed,
)
from barnabas.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)
from barnabas.security.acl import CLUSTER_NAME, Operation, ResourceType


def handle(context: Context, request: OffsetForLeaderEpochRequest) -> Outcome:
    return run_slices(_answer(context, request))


def _answer(
    context: Context, request: OffsetForLeaderEpochRequest
) -> Slices[OffsetForLeaderEpochResponse]:
    pace = Pace()
    # A follower needs CLUSTER_ACTION, which is checked once for all topics. A consumer needs
    # DESCRIBE on each topic (KIP-320).
    is_broker = context.may(Operation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME)
    topics = []
    for topic in request.topics:
        is_allowed = is_broker or context.is_allowed(topic.topic)
        partitions = []
        for wanted in topic.partitions:
            partitions.append(_end_offset(context, topic.topic, wanted, is_allowed))
            if pace.is_over():
                yield
        topics.append(OffsetForLeaderTopicResult(topic=topic.topic, partitions=partitions))
        if pace.is_over():
            yield
    return OffsetForLeaderEpochResponse(topics=topics)


def _end_offset(
    context: Context, topic: str, wanted: OffsetForLeaderPartition, is_allowed: bool
) -> EpochEndOffset:
    try:
        if not is_allowed:
            raise TopicAuthorizationFailed(f"not allowed to describe {topic}")
        place = (topic, wanted.partition)
        replica = context.node.replicas.leader_of(place, wanted.current_leader_epoch)
        epoch, end_offset = replica.log.epoch_end_offset(wanted.leader_epoch)
    except KafkaError as error:
        return EpochEndOffset(partition=wanted.partition, error_code=error.code)
    return EpochEndOffset(partition=wanted.partition, leader_epoch=epoch, end_offset=end_offset)
