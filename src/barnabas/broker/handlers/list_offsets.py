"""ListOffsets (key 2): the offset that a timestamp, or one of the special ones, stands for."""

from __future__ import annotations

from barnabas.broker.context import Context
from barnabas.broker.replica import Replica
from barnabas.errors import CorruptData, KafkaError, KafkaStorageError, TopicAuthorizationFailed
from barnabas.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from barnabas.types import TopicPartition

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL = -1, -2, -3, -4
_OLD_STYLE = 0  # version 0 lists segment base offsets; asked by nobody but the oldest clients

_TELLS_EPOCH = 4
NO_EPOCH = -1

Found = tuple[int, int, int]  # offset, timestamp, leader epoch
_NONE: Found = (-1, -1, -1)


def handle(context: Context, request: ListOffsetsRequest) -> ListOffsetsResponse:
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                name=topic.name,
                partitions=[_list(context, topic.name, wanted) for wanted in topic.partitions],
            )
            for topic in request.topics
        ]
    )


def _list(
    context: Context, topic: str, wanted: ListOffsetsPartition
) -> ListOffsetsPartitionResponse:
    try:
        if not context.allowed(topic):
            raise TopicAuthorizationFailed(f"not allowed to describe {topic}")
        replica = context.node.replicas.leader_of(TopicPartition(topic, wanted.partition_index))
        replica.partition.check_leader_epoch(wanted.current_leader_epoch)
        offset, timestamp, leader_epoch = _find(replica, wanted.timestamp)
    except (KafkaError, OSError, CorruptData) as error:
        row = error if isinstance(error, KafkaError) else KafkaStorageError(str(error))
        return ListOffsetsPartitionResponse(
            partition_index=wanted.partition_index,
            error_code=row.code,
            timestamp=-1,
            offset=-1,
            leader_epoch=-1,
        )
    if context.version == _OLD_STYLE:
        return ListOffsetsPartitionResponse(
            partition_index=wanted.partition_index,
            old_style_offsets=[offset] if offset >= 0 else [],
        )
    return ListOffsetsPartitionResponse(
        partition_index=wanted.partition_index,
        timestamp=timestamp,
        offset=offset,
        leader_epoch=leader_epoch if context.version >= _TELLS_EPOCH else NO_EPOCH,
    )


def _find(replica: Replica, timestamp: int) -> Found:
    """The answer for one timestamp; (-1, -1, -1) when no record is that young."""
    log = replica.log
    if timestamp == LATEST:
        return replica.high_watermark, -1, replica.partition.leader_epoch
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        start = log.log_start_offset
        return start, -1, log.epochs.epoch_at(start)
    if timestamp == MAX_TIMESTAMP:
        return log.max_timestamp_offset() or _NONE
    return log.offset_for_timestamp(timestamp, replica.high_watermark) or _NONE
