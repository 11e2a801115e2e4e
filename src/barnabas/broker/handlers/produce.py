"""Produce (key 0): append batches as the leader, answer as `acks` asks.

Stage one appends and patches in place; there is no `await` in it, so requests of one connection
append in their order. Stage two, only where the high watermark has not yet passed (acks=all),
waits for it. A failed partition does not fail its neighbours.
"""

from __future__ import annotations

import asyncio
import logging

from barnabas.broker.context import Context
from barnabas.broker.replica import Replica
from barnabas.broker.router import Outcome
from barnabas.cluster.layout import INTERNAL_TOPICS
from barnabas.errors import (
    InvalidRecord,
    InvalidRequiredAcks,
    InvalidTopic,
    KafkaError,
    KafkaStorageError,
    NotEnoughReplicasAfterAppend,
    RequestTimedOut,
    TopicAuthorizationFailed,
)
from barnabas.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from barnabas.types import TopicPartition

_log = logging.getLogger(__name__)

ACKS_NONE, ACKS_ALL = 0, -1

# A partition whose answer has to wait: its replica, the offset to pass, the answer to correct.
Waiting = list[tuple[Replica, int, PartitionProduceResponse]]


def handle(context: Context, request: ProduceRequest) -> Outcome:
    waiting: Waiting = []
    responses = [
        TopicProduceResponse(
            name=topic.name,
            partition_responses=[
                _append(context, request.acks, topic.name, data, waiting)
                for data in topic.partition_data
            ],
        )
        for topic in request.topic_data
    ]
    if request.acks == ACKS_NONE:
        _tell_by_closing(responses)
        return None
    response = ProduceResponse(responses=responses)
    if waiting:
        return _wait(response, waiting, request.timeout_ms)
    return response


def _append(
    context: Context, acks: int, topic: str, data: PartitionProduceData, waiting: Waiting
) -> PartitionProduceResponse:
    """Append one partition's batches; every failure is this partition's answer."""
    try:
        if acks not in (ACKS_NONE, 1, ACKS_ALL):
            raise InvalidRequiredAcks(f"acks={acks}: 0, 1 and -1 (all) are possible")
        if not context.allowed(topic):
            raise TopicAuthorizationFailed(f"not allowed to write to {topic}")
        if topic in INTERNAL_TOPICS:
            raise InvalidTopic(f"{topic} is internal: clients cannot write to it")
        replica = context.node.replicas.leader_of(TopicPartition(topic, data.index))
        if acks == ACKS_ALL:
            replica.partition.check_acks_all()
        records = data.records
        if not isinstance(records, memoryview) or not len(records):
            raise InvalidRecord(f"no records for {topic}-{data.index}")
        result = replica.append(records, context.node.clock.now_ms())
    except KafkaError as error:
        return _failed(data.index, error)
    except OSError as error:
        _log.error("append to %s-%d failed: %s", topic, data.index, error)
        return _failed(data.index, KafkaStorageError(str(error)))
    answer = PartitionProduceResponse(
        index=data.index,
        base_offset=result.base_offset,
        log_append_time_ms=result.log_append_time_ms,
        log_start_offset=result.log_start_offset,
    )
    if acks == ACKS_ALL and replica.high_watermark <= result.last_offset:
        waiting.append((replica, result.last_offset + 1, answer))
    return answer


def _failed(index: int, error: KafkaError) -> PartitionProduceResponse:
    return PartitionProduceResponse(
        index=index,
        error_code=error.code,
        base_offset=-1,
        log_append_time_ms=-1,
        log_start_offset=-1,
        error_message=str(error) or None,
    )


def _tell_by_closing(responses: list[TopicProduceResponse]) -> None:
    """acks=0: nothing is answered; an error is told by closing the connection, as Kafka does."""
    for topic in responses:
        for partition in topic.partition_responses:
            if partition.error_code:
                raise InvalidRecord(
                    f"produce with acks=0 to {topic.name}-{partition.index} failed with error "
                    f"{partition.error_code}: {partition.error_message}"
                )


async def _wait(response: ProduceResponse, waiting: Waiting, timeout_ms: int) -> ProduceResponse:
    """Stage two of acks=all: every replica of the ISR has it, or the time is over."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + timeout_ms / 1000
    for replica, offset, answer in waiting:
        try:
            async with asyncio.timeout_at(deadline):
                await replica.wait_for(offset)
            if not replica.partition.has_enough_in_sync():
                raise NotEnoughReplicasAfterAppend(
                    f"{replica.topic_partition}: written, but the ISR shrank below "
                    "min.insync.replicas"
                )
        except TimeoutError:
            answer.error_code = RequestTimedOut.code
            answer.error_message = f"not replicated within {timeout_ms} ms"
        except KafkaError as error:
            answer.error_code = error.code
            answer.error_message = str(error)
    return response
