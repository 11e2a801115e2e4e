"""ListOffsets (key 2): find the offset for a timestamp or for a special timestamp.

    -1  latest                  the first offset that the client cannot read
    -2  earliest                the log start offset
    -3  largest timestamp       from version 7 on (KIP-734)
    -4  earliest on this disk   from version 8 on (KIP-405); the same as -2
    -5  latest in tiered storage    from version 9 on (KIP-1005); there is none

A client can read up to the high watermark or, with read_committed, up to the last stable offset. A
replica can read everything. If the replica id is -2, any replica can answer the request, not only
the leader.

Offsets are looked up by timestamp in a thread, because the search may have to read every segment.
All other requests are answered immediately.

If the high watermark of a leader is below the start of its leader epoch, the leader does not know
yet which records its predecessor exposed to clients. It then returns an error, because otherwise
the returned offsets might go backwards (KIP-207).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Coroutine
from typing import Any, NamedTuple

from barnabas.broker.context import Context
from barnabas.broker.outcome import Outcome
from barnabas.broker.partitions.replica import Replica
from barnabas.broker.runtime.disk_threads import run_in
from barnabas.broker.runtime.slices import Pace, Slices, run_slices
from barnabas.errors import (
    CorruptData,
    CorruptMessage,
    InvalidRequest,
    KafkaError,
    KafkaStorageError,
    LeaderNotAvailable,
    OffsetNotAvailable,
    TopicAuthorizationFailed,
    UnsupportedVersion,
)
from barnabas.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from barnabas.storage.cold_lookups import Lookup, newest_lookup, timestamp_lookup
from barnabas.types import TopicPartition

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED = -1, -2, -3, -4, -5

_FIRST_VERSION_OF = {
    LATEST: 1,
    EARLIEST: 1,
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
}
_OLD_STYLE = 0  # version 0, sent only by very old clients, lists segments
_TELLS_EPOCH = 4
_CONSUMER, _ANY_REPLICA = -1, -2  # replica ids
_TELLS_UNAVAILABLE = 5
_READ_COMMITTED = 1
NO_EPOCH = -1

Later = Coroutine[Any, Any, ListOffsetsResponse]

Offset = tuple[int, int, int]  # offset, timestamp, leader epoch
_NONE: Offset = (-1, -1, NO_EPOCH)


def handle(context: Context, request: ListOffsetsRequest) -> Outcome:
    return run_slices(_answer_all(context, request))


class _Searched(NamedTuple):
    """A partition that must be searched in a thread."""

    replica: Replica
    timestamp: int
    end_offset: int
    max_num_offsets: int
    result: ListOffsetsPartitionResponse


def _answer_all(
    context: Context, request: ListOffsetsRequest
) -> Slices[ListOffsetsResponse | Later]:
    pace = Pace()
    times: Counter[tuple[str, int]] = Counter()
    for topic in request.topics:
        for wanted in topic.partitions:
            times[topic.name, wanted.partition_index] += 1
            if pace.is_over():
                yield
        if pace.is_over():
            yield
    topics = []
    searched: list[_Searched] = []
    for topic in request.topics:
        partitions = []
        is_allowed = context.is_allowed(topic.name)
        for wanted in topic.partitions:
            name = TopicPartition(topic.name, wanted.partition_index)
            try:
                if not is_allowed:
                    raise TopicAuthorizationFailed(f"not allowed to describe {topic.name}")
                # Kafka rejects every row of a partition listed twice, because the rows could
                # differ.
                if times[name] > 1:
                    raise InvalidRequest(f"{name} is listed more than once")
                partitions.append(_answer(context, request, name, wanted, searched))
            except KafkaError as error:
                failed = ListOffsetsPartitionResponse(
                    partition_index=wanted.partition_index, error_code=error.code
                )
                partitions.append(failed)
            if pace.is_over():
                yield
        topics.append(ListOffsetsTopicResponse(name=topic.name, partitions=partitions))
        if pace.is_over():
            yield
    response = ListOffsetsResponse(topics=topics)
    return _search_all(context, request, searched, response) if searched else response


async def _search_all(
    context: Context,
    request: ListOffsetsRequest,
    searched: list[_Searched],
    response: ListOffsetsResponse,
) -> ListOffsetsResponse:
    for each in searched:
        result = each.result
        try:
            is_old = context.version == _OLD_STYLE
            wanted = MAX_TIMESTAMP if is_old else each.timestamp
            lookup = await _look_up(context, each.replica, wanted)
            if is_old:
                now_ms = context.node.clock.wall_ms()
                offsets = _segment_offsets(each.replica, each.timestamp, each.end_offset, now_ms)
                result.old_style_offsets = offsets[: max(0, each.max_num_offsets)]
                continue
            found = lookup.found
            # The client can read no record that is as recent as the timestamp. Return -1 if this
            # leader knows its end offset.
            if found is None or found.offset >= each.end_offset:
                _check_known(context, each.replica, request, each.timestamp)
            else:
                _set_offset(context, result, found)
        except KafkaError as error:
            result.error_code = error.code
        except CorruptData as error:
            failures = context.node.replicas.read_failures
            failures.on_failure("search", each.replica.topic_partition, error)
            result.error_code = CorruptMessage.code
        except OSError:
            result.error_code = KafkaStorageError.code
    return response


async def _look_up(context: Context, replica: Replica, timestamp: int) -> Lookup:
    """Search in a thread.

    Search again if the log was moved in the meantime, or if the part that was searched was deleted.
    """
    pool = context.node.replicas.threads.reads
    while True:
        log = replica.log
        is_newest = timestamp == MAX_TIMESTAMP
        lookup = newest_lookup(log) if is_newest else timestamp_lookup(log, timestamp)
        failure: Exception | None = None
        try:
            await run_in(pool, lookup.run)
        except (OSError, CorruptData) as error:
            failure = error
        # The timestamps that the thread read are valid only for the log that it searched.
        if lookup.is_of(replica.log):
            if failure is not None:
                raise failure
            lookup.learn()
            return lookup


def _set_offset(context: Context, result: ListOffsetsPartitionResponse, found: Offset) -> None:
    result.offset, result.timestamp, leader_epoch = found
    if context.version >= _TELLS_EPOCH:
        result.leader_epoch = leader_epoch


def _answer(
    context: Context,
    request: ListOffsetsRequest,
    name: TopicPartition,
    wanted: ListOffsetsPartition,
    searched: list[_Searched],
) -> ListOffsetsPartitionResponse:
    """Return the response for one partition.

    If a search in a thread is needed, add the partition to `searched`.
    """
    timestamp = wanted.timestamp
    is_special = timestamp < 0 and context.version != _OLD_STYLE
    if is_special and context.version < _FIRST_VERSION_OF.get(timestamp, context.version + 1):
        raise UnsupportedVersion(
            f"timestamp {timestamp} is not supported in version {context.version}"
        )
    replicas = context.node.replicas
    find = replicas.replica_of if request.replica_id == _ANY_REPLICA else replicas.leader_of
    replica = find(name, wanted.current_leader_epoch)
    end_offset = _end_offset(replica, request)
    result = ListOffsetsPartitionResponse(partition_index=name.partition)
    if context.version == _OLD_STYLE or timestamp >= 0 or timestamp == MAX_TIMESTAMP:
        most = wanted.max_num_offsets
        searched.append(_Searched(replica, timestamp, end_offset, most, result))
        return result
    found = _find(replica, timestamp, end_offset)
    if found == _NONE or timestamp == LATEST:
        _check_known(context, replica, request, timestamp)
    _set_offset(context, result, found)
    return result


def _end_offset(replica: Replica, request: ListOffsetsRequest) -> int:
    """Return the first offset that the client cannot read."""
    if request.replica_id != _CONSUMER:
        return replica.log.log_end_offset
    if request.isolation_level == _READ_COMMITTED:
        return replica.last_stable_offset
    return replica.high_watermark


def _check_known(
    context: Context, replica: Replica, request: ListOffsetsRequest, timestamp: int
) -> None:
    """Raise an error if this leader does not know yet which end offset to return."""
    epoch_start = replica.partition.epoch_start_offset
    if (
        request.replica_id != _CONSUMER
        or timestamp in (EARLIEST, EARLIEST_LOCAL, LATEST_TIERED)
        or replica.high_watermark >= epoch_start
    ):
        return
    message = (
        f"{replica.topic_partition}: the new leader's high watermark, {replica.high_watermark}, is "
        f"still below the start of its epoch, {epoch_start}"
    )
    if context.version < _TELLS_UNAVAILABLE:
        raise LeaderNotAvailable(message)
    raise OffsetNotAvailable(message)


def _find(replica: Replica, timestamp: int, end_offset: int) -> Offset:
    """Return the response if no record has to be read.

    (-1, -1, -1) means that there is no matching offset.
    """
    log = replica.log
    if timestamp == LATEST:
        return end_offset, -1, replica.partition.leader_epoch
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        start = log.log_start_offset
        return start, -1, log.epochs.epoch_at(start)
    assert timestamp == LATEST_TIERED
    return _NONE


def _segment_offsets(replica: Replica, timestamp: int, end_offset: int, now_ms: int) -> list[int]:
    """Return the base offsets of the segments that are not younger than the timestamp, starting
    with the newest segment.

    The log end counts as a segment that begins now. A segment is as old as its youngest record.
    """
    log = replica.log
    begins = [
        (max(segment.base_offset, log.log_start_offset), segment.max_timestamp)
        for segment in log.segments
    ]
    if log.segments[-1].size_bytes:
        begins.append((log.log_end_offset, now_ms))
    if timestamp == EARLIEST:
        begins = begins[:1]
    elif timestamp != LATEST:
        while begins and begins[-1][1] > timestamp:
            begins.pop()
    offsets = [offset for offset, _ in reversed(begins)]
    if offsets and offsets[0] > end_offset:
        offsets = [end_offset, *(offset for offset in offsets if offset <= end_offset)]
    return offsets
