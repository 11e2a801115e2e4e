"""Fetch (key 1): whole batches below the high watermark, by `sendfile`, with a long poll.

Stage one reads. If that gave less than `min_bytes` and nothing failed, the fetch is parked at its
partitions and reads once more when enough has come or `max_wait_ms` is over. Fetch sessions are
declined (session id 0), which every client accepts; incremental sessions come with a later
version.
"""

from __future__ import annotations

import logging
from typing import NamedTuple

from barnabas.broker.context import Context
from barnabas.broker.parked_fetch import ParkedFetch
from barnabas.broker.replica import Replica
from barnabas.broker.router import Outcome
from barnabas.errors import (
    CorruptData,
    FetchSessionIdNotFound,
    KafkaError,
    KafkaStorageError,
    TopicAuthorizationFailed,
    UnknownTopicId,
    UnsupportedVersion,
)
from barnabas.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from barnabas.types import FileSlice, TopicPartition

_log = logging.getLogger(__name__)

_OLDEST = 4  # below, records would have to be converted down, which nobody does any more
_TOPIC_IDS = 13
_NEW_SESSION_EPOCHS = (0, -1)


class _Answer(NamedTuple):
    """What one pass over the partitions found."""

    response: FetchResponse
    size_bytes: int
    has_error: bool
    replicas: list[Replica]


def handle(context: Context, request: FetchRequest) -> Outcome:
    if request.session_id != 0 and request.session_epoch not in _NEW_SESSION_EPOCHS:
        return FetchResponse(error_code=FetchSessionIdNotFound.code)
    answer = _read_all(context, request)
    if (
        answer.has_error
        or answer.size_bytes >= request.min_bytes
        or request.max_wait_ms <= 0
        or not answer.replicas
    ):
        return answer.response
    _release(answer.response)
    parked = ParkedFetch(answer.replicas, request.min_bytes - answer.size_bytes)
    return _wait(context, request, parked)


async def _wait(context: Context, request: FetchRequest, parked: ParkedFetch) -> FetchResponse:
    await parked.wait(request.max_wait_ms)
    return _read_all(context, request).response


def _release(response: FetchResponse) -> None:
    """Give back the slices of an answer that is not sent: it is read again later."""
    for topic in response.responses:
        for partition in topic.partitions:
            if isinstance(partition.records, list):
                for part in partition.records:
                    if isinstance(part, FileSlice):
                        part.release()


def _read_all(context: Context, request: FetchRequest) -> _Answer:
    left_bytes = request.max_bytes
    size_bytes = 0
    has_error = False
    replicas: list[Replica] = []
    responses = []
    for topic in request.topics:
        partitions = []
        for wanted in topic.partitions:
            try:
                replica = _replica(context, topic, wanted)
                # A first batch larger than every limit is returned all the same, or its reader
                # would never get past it (KIP-74).
                slices = replica.read(
                    wanted.fetch_offset,
                    min(left_bytes, wanted.partition_max_bytes),
                    at_least_one_batch=size_bytes == 0,
                )
            except KafkaError as error:
                has_error = True
                partitions.append(_failed(wanted.partition, error))
                continue
            except (OSError, CorruptData) as error:
                _log.error("read of %s-%d failed: %s", topic.topic, wanted.partition, error)
                has_error = True
                partitions.append(_failed(wanted.partition, KafkaStorageError(str(error))))
                continue
            found_bytes = sum(part.size for part in slices)
            size_bytes += found_bytes
            left_bytes = max(0, left_bytes - found_bytes)
            replicas.append(replica)
            partitions.append(_found(replica, slices))
        responses.append(
            FetchableTopicResponse(
                topic=topic.topic, topic_id=topic.topic_id, partitions=partitions
            )
        )
    return _Answer(FetchResponse(responses=responses), size_bytes, has_error, replicas)


def _replica(context: Context, topic: FetchTopic, wanted: FetchPartition) -> Replica:
    """The leader's replica that may answer, or the KafkaError that is the answer."""
    name = topic.topic
    if context.version >= _TOPIC_IDS:
        known = context.node.image.topic_names.get(topic.topic_id)
        if known is None:
            raise UnknownTopicId("no topic has this id (deleted, or not yet known here)")
        name = known
    if context.version < _OLDEST:
        raise UnsupportedVersion(f"Fetch version {context.version} cannot carry record batches")
    if not context.allowed(name):
        raise TopicAuthorizationFailed(f"not allowed to read {name}")
    replica = context.node.replicas.leader_of(TopicPartition(name, wanted.partition))
    replica.partition.check_leader_epoch(wanted.current_leader_epoch)
    return replica


def _found(replica: Replica, slices: list[FileSlice]) -> PartitionData:
    return PartitionData(
        partition_index=replica.topic_partition.partition,
        high_watermark=replica.high_watermark,
        last_stable_offset=replica.high_watermark,
        log_start_offset=replica.log.log_start_offset,
        aborted_transactions=None,
        records=list(slices),
    )


def _failed(partition: int, error: KafkaError) -> PartitionData:
    return PartitionData(
        partition_index=partition,
        error_code=error.code,
        high_watermark=-1,
        last_stable_offset=-1,
        log_start_offset=-1,
        aborted_transactions=None,
        records=b"",
    )
