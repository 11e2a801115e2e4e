"""DeleteRecords (key 21): what is below an offset is gone at once; its segments go with the next
look for old ones (ST-10).

Only up to the high watermark, for a replica that lags would bring the rest back. The answer is
where the partition begins on all of its replicas, and this broker is all of them.
"""

from __future__ import annotations

from barnabas.broker.context import Context
from barnabas.broker.replica import Replica
from barnabas.cluster.layout import INTERNAL_TOPICS
from barnabas.errors import (
    InvalidTopic,
    KafkaError,
    KafkaStorageError,
    OffsetOutOfRange,
    PolicyViolation,
    TopicAuthorizationFailed,
)
from barnabas.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from barnabas.types import TopicPartition

_UP_TO_HIGH_WATERMARK = -1
_NO_LOW_WATERMARK = -1


def handle(context: Context, request: DeleteRecordsRequest) -> DeleteRecordsResponse:
    return DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(
                name=topic.name,
                partitions=[_delete(context, topic.name, each) for each in topic.partitions],
            )
            for topic in request.topics
        ]
    )


def _delete(
    context: Context, topic: str, wanted: DeleteRecordsPartition
) -> DeleteRecordsPartitionResult:
    result = DeleteRecordsPartitionResult(
        partition_index=wanted.partition_index, low_watermark=_NO_LOW_WATERMARK
    )
    try:
        if not context.allowed(topic):
            raise TopicAuthorizationFailed(f"not allowed to delete records of {topic}")
        if topic in INTERNAL_TOPICS:
            raise InvalidTopic(f"{topic} is internal")
        replica = context.node.leader_of(TopicPartition(topic, wanted.partition_index))
        result.low_watermark = _delete_below(context, replica, wanted.offset)
    except KafkaError as error:
        result.error_code = error.code
    return result


def _delete_below(context: Context, replica: Replica, offset: int) -> int:
    """Returns where the log begins now."""
    log, high_watermark = replica.log, replica.high_watermark
    if "delete" not in log.config.cleanup_policy.split(","):
        raise PolicyViolation(f"{replica.topic_partition} is compacted, and deletes nothing else")
    if offset == _UP_TO_HIGH_WATERMARK:
        offset = high_watermark
    if not 0 <= offset <= high_watermark:
        raise OffsetOutOfRange(
            f"{offset} is above the high watermark of {replica.topic_partition}, {high_watermark}"
        )
    try:
        log.raise_log_start(offset)
    except OSError as error:
        context.node.replicas.fail_directory(replica, error)
        raise KafkaStorageError(str(error)) from error
    replica.wake_watchers()
    return log.log_start_offset
