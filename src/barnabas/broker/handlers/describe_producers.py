"""DescribeProducers (key 61): the producers that a partition's leader keeps state of (KIP-664).

It includes the start offset of each open transaction, by which hanging ones are found.
"""

from __future__ import annotations

from barnabas.broker.context import Context
from barnabas.broker.outcome import Outcome
from barnabas.broker.runtime.slices import Pace, Slices, sliced
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
    return sliced(_answer(context, request))


def _answer(
    context: Context, request: DescribeProducersRequest
) -> Slices[DescribeProducersResponse]:
    pace = Pace()
    topics = []
    for topic in request.topics:
        partitions = []
        is_allowed = context.allowed(topic.name)
        for partition in topic.partition_indexes:
            partitions.append(_describe(context, topic, partition, is_allowed))
            if pace.is_over(1 + len(partitions[-1].active_producers)):
                yield
        topics.append(DescribeProducersTopicResponse(name=topic.name, partitions=partitions))
        if pace.is_over():
            yield
    return DescribeProducersResponse(topics=topics)


def _describe(
    context: Context, topic: DescribeProducersTopic, partition: int, is_allowed: bool
) -> DescribeProducersPartition:
    try:
        if not is_allowed:
            raise TopicAuthorizationFailed
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
