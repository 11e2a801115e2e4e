"""DeleteRecords (key 21): raise the log start offset of partitions (ST-10).

Records below that offset can no longer be read, and the next retention check deletes their
segments. The offset may not be above the high watermark, because a replica that lags behind could
otherwise bring deleted records back. The response is sent once the logs of all live replicas start
at or above the offset, and contains the lowest of their log start offsets.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any, NamedTuple

from barnabas.broker.context import Context
from barnabas.broker.outcome import Outcome
from barnabas.broker.partitions.log_events import deletion_event
from barnabas.broker.partitions.replica import Replica
from barnabas.broker.runtime.slices import Pace, Slices, run_slices
from barnabas.cluster.layout import INTERNAL_TOPICS
from barnabas.errors import (
    InvalidTopic,
    KafkaError,
    KafkaStorageError,
    NotLeaderOrFollower,
    OffsetOutOfRange,
    PolicyViolation,
    RequestTimedOut,
    TopicAuthorizationFailed,
)
from barnabas.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)

_log = logging.getLogger(__name__)

_UP_TO_HIGH_WATERMARK = -1
_NO_LOW_WATERMARK = -1
_LOOK_AGAIN_S = 0.5  # no event reports a failed broker, so poll

Later = Coroutine[Any, Any, DeleteRecordsResponse]


class _Pending(NamedTuple):
    """A partition for which some live replicas have not reached the new start offset yet."""

    replica: Replica
    offset: int
    result: DeleteRecordsPartitionResult


def handle(context: Context, request: DeleteRecordsRequest) -> Outcome:
    return run_slices(_delete_all(context, request))


def _delete_all(
    context: Context, request: DeleteRecordsRequest
) -> Slices[DeleteRecordsResponse | Later]:
    pending: list[_Pending] = []
    pace = Pace()
    topics = []
    for topic in request.topics:
        partitions = []
        is_allowed = context.is_allowed(topic.name)
        for each in topic.partitions:
            if is_allowed:
                partitions.append(_delete(context, topic.name, each, pending))
            else:
                refused = _result(each)
                refused.error_code = TopicAuthorizationFailed.code
                partitions.append(refused)
            if pace.is_over():
                yield
        topics.append(DeleteRecordsTopicResult(name=topic.name, partitions=partitions))
        if pace.is_over():
            yield
    response = DeleteRecordsResponse(topics=topics)
    if not pending:
        return response
    return _wait(context, response, pending, request.timeout_ms)


def _delete(
    context: Context, topic: str, wanted: DeleteRecordsPartition, pending: list[_Pending]
) -> DeleteRecordsPartitionResult:
    result = _result(wanted)
    try:
        # A coordinator loads its state from this log, and would lose groups or transactions.
        if topic in INTERNAL_TOPICS:
            raise InvalidTopic(f"{topic} is an internal topic")
        replica = context.node.replicas.leader_of((topic, wanted.partition_index))
        offset = _delete_below(context, replica, wanted.offset)
        result.low_watermark = _low_watermark(context, replica)
        # A follower adopts the new start offset with its next fetch and reports it in the following
        # fetch.
        if result.low_watermark < offset:
            pending.append(_Pending(replica, offset, result))
    except KafkaError as error:
        result.error_code = error.code
    return result


def _result(wanted: DeleteRecordsPartition) -> DeleteRecordsPartitionResult:
    return DeleteRecordsPartitionResult(
        partition_index=wanted.partition_index, low_watermark=_NO_LOW_WATERMARK
    )


def _low_watermark(context: Context, replica: Replica) -> int:
    return replica.partition.low_watermark(context.node.view.live_brokers())


async def _wait(
    context: Context, response: DeleteRecordsResponse, pending: list[_Pending], timeout_ms: int
) -> DeleteRecordsResponse:
    loop = asyncio.get_running_loop()
    until = loop.time() + timeout_ms / 1000
    for each in pending:
        try:
            await _wait_for_start(context, each, until)
            each.result.low_watermark = _low_watermark(context, each.replica)
        except KafkaError as error:
            each.result.error_code = error.code
    return response


async def _wait_for_start(context: Context, pending: _Pending, until: float) -> None:
    """Return when the logs of all live replicas start at or above the offset.

    Raises RequestTimedOut, and NotLeaderOrFollower or a similar error if this broker is no longer
    the leader.
    """
    loop = asyncio.get_running_loop()
    replica, name = pending.replica, pending.replica.topic_partition
    while True:
        # `leader_of` raises an error if this broker is no longer the leader. The topic may also
        # have been recreated under the same name with unrelated offsets.
        if context.node.replicas.leader_of(name) is not replica:
            raise NotLeaderOrFollower(f"{name} was deleted and recreated")
        if _low_watermark(context, replica) >= pending.offset:
            return
        left_s = until - loop.time()
        if left_s <= 0:
            raise RequestTimedOut(
                f"not all live replicas of {name} start at offset {pending.offset} yet"
            )
        await replica.low_watermark_moves(min(left_s, _LOOK_AGAIN_S))


def _delete_below(context: Context, replica: Replica, offset: int) -> int:
    """Raise the log start offset, and return the offset that the replicas have to reach."""
    log, high_watermark = replica.log, replica.high_watermark
    # Compaction guarantees that the last value of each key is kept, but the deletion could remove
    # it.
    if "delete" not in log.config.cleanup_policy.split(","):
        raise PolicyViolation(f"the cleanup.policy of {replica.topic_partition} lacks delete")
    if offset == _UP_TO_HIGH_WATERMARK:
        offset = high_watermark
    if not 0 <= offset <= high_watermark:
        raise OffsetOutOfRange(
            f"offset {offset} is not between 0 and {high_watermark}, the high watermark of "
            f"{replica.topic_partition}"
        )
    before = log.log_start_offset
    try:
        log.raise_log_start(offset)
    except OSError as error:
        replica.fail(error)
        raise KafkaStorageError(str(error)) from error
    replica.log_start_moved()
    if log.log_start_offset > before:
        context.node.replicas.events.add_routine(deletion_event(replica, context.origin), _log)
    return offset
