"""DescribeProducers (key 61): describe the active producers in partitions (KIP-664).

The response includes the start offset of each open transaction, so that tools can find hanging
transactions.
"""

from __future__ import annotations

from barnabas.broker.context import Context
from barnabas.broker.outcome import Outcome
from barnabas.broker.runtime.slices import Pace, Slices, run_slices
from barnabas.errors import KafkaError, TopicAuthorizationFailed, UnknownTopicOrPartition
from barnabas.protocol.messages.describe_producers import (
    DescribeProducersPartition,
    DescribeProducersRequest,
    DescribeProducersResponse,
    DescribeProducersTopic,
    DescribeProducersTopicResponse,
    ProducerState,
)


def handle(context: Context, request: DescribeProducersRequest) -> Outcome:
    return run_slices(_answer(context, request))


def _answer(
    context: Context, request: DescribeProducersRequest
) -> Slices[DescribeProducersResponse]:
    pace = Pace()
    topics: dict[str, dict[int, DescribeProducersPartition]] = {}  # each partition is listed once
    for topic in request.topics:
        is_allowed = context.is_allowed(topic.name)
        partitions = topics.setdefault(topic.name, {})
        for partition in topic.partition_indexes:
            entries = 1
            if partition not in partitions:
                found = partitions[partition] = _describe(context, topic, partition, is_allowed)
                entries += len(found.active_producers)
            if pace.is_over(entries):
                yield
        if pace.is_over():
            yield
    return DescribeProducersResponse(
        topics=[
            DescribeProducersTopicResponse(name=name, partitions=list(partitions.values()))
            for name, partitions in topics.items()
        ]
    )


def _describe(
    context: Context, topic: DescribeProducersTopic, partition: int, is_allowed: bool
) -> DescribeProducersPartition:
    try:
        if not is_allowed:
            raise TopicAuthorizationFailed
        # Only a partition that exists gets NOT_LEADER_OR_FOLLOWER, because clients retry that
        # error at another broker.
        if topic.name not in context.node.image.topics:
            raise UnknownTopicOrPartition
        replica = context.node.replicas.leader_of((topic.name, partition))
    except KafkaError as error:
        return DescribeProducersPartition(
            partition_index=partition, error_code=error.code, error_message=str(error)
        )
    return DescribeProducersPartition(
        partition_index=partition,
        active_producers=[
            ProducerState(
                producer_id=producer_id,
                producer_epoch=producer.epoch,
                last_sequence=producer.last_sequence,
                last_timestamp=producer.timestamp,
                coordinator_epoch=producer.coordinator_epoch,
                current_txn_start_offset=producer.transaction_offset,
            )
            for producer_id, producer in replica.log.producers
        ],
    )
