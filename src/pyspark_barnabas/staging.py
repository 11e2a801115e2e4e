"""Where rows wait for their micro-batch to be committed: a topic of batches, encoded already.

    task: rows -> batches, one target partition each -> staging topic, at least once -> their places
    driver, in commit: places -> batches, as they are -> target partitions, in one transaction

A task may run twice, speculatively or after a failure, and tasks may be cut differently in a
replay: only the places that reach the driver count, whatever else lies in the staging topic. What
is older than a committed micro-batch is deleted; what a query leaves for good goes after a day.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from barnabas.client.admin import Admin, NewTopic
from barnabas.client.consumer import Consumer
from barnabas.client.errors import NoOffsetForPartition
from barnabas.client.fetched import FetchedBytes
from barnabas.client.murmur2 import partition_for_key
from barnabas.client.producer import Producer
from barnabas.errors import (
    BarnabasError,
    ConfigError,
    TopicAlreadyExists,
    UnknownTopicOrPartition,
)
from barnabas.records.batch import iterate_batches
from barnabas.types import TopicPartition

_PARTITIONS: Final = 8
_LOOK_MS: Final = 1_000
_CONFIGS: Final = {
    "cleanup.policy": "delete",
    "retention.ms": str(24 * 3_600_000),
    "compression.type": "producer",
    "max.message.bytes": str(8 << 20),
}


class StagedBatch(NamedTuple):
    """A record batch in the staging topic, and where it is to go."""

    staging_partition: int
    offset: int  # of its first record, in the staging topic
    target: TopicPartition
    rows: int


class StagingLost(BarnabasError):
    """Rows that were staged are not there any more; the micro-batch has to run again."""


def staging_topic(transactional_id: str) -> str:
    return f"{transactional_id}-staging"


def partition_of(target: TopicPartition) -> int:
    """The staging partition of a target: always the same, so that a task's rows stay in order."""
    return partition_for_key(f"{target.topic}-{target.partition}".encode(), _PARTITIONS)


async def create(admin: Admin, topic: str) -> None:
    """Make the staging topic if it is not there.

    Raises `ConfigError` where there is another topic of that name.
    """
    try:
        await admin.create_topics([NewTopic(topic, _PARTITIONS, configs=_CONFIGS)])
    except TopicAlreadyExists:
        (found,) = await admin.describe_topics([topic])
        if len(found.partitions) != _PARTITIONS:
            raise ConfigError(
                f"the topic {topic} has {len(found.partitions)} partitions, where the staging topic"
                f" of a query has {_PARTITIONS}: somebody else made it; delete it, and the query"
                " goes on"
            ) from None


async def copy(
    consumer: Consumer,
    producer: Producer,
    topic: str,
    staged: Iterable[StagedBatch],
    timeout_ms: int,
) -> None:
    """Send what was staged to its targets, in order; returns when all of it is queued.

    Raises `StagingLost`.
    """
    try:
        await _copy_all(consumer, producer, topic, staged, timeout_ms)
    except (NoOffsetForPartition, UnknownTopicOrPartition) as error:
        raise StagingLost(f"what was staged in {topic} was deleted: {error}") from None


async def _copy_all(
    consumer: Consumer,
    producer: Producer,
    topic: str,
    staged: Iterable[StagedBatch],
    timeout_ms: int,
) -> None:
    wanted: dict[TopicPartition, dict[int, StagedBatch]] = {}
    for each in sorted(staged):
        place = TopicPartition(topic, each.staging_partition)
        wanted.setdefault(place, {})[each.offset] = each
    consumer.assign(list(wanted))
    for place, batches in wanted.items():
        consumer.seek(place, min(batches))
    waited_ms = 0
    while wanted:
        fetched = await consumer.fetch_batches(_LOOK_MS)
        if fetched:
            waited_ms = 0
        else:
            await consumer.partitions_for(topic)  # raises where there is none any more
            waited_ms += _LOOK_MS
        if waited_ms >= timeout_ms:
            missing = ", ".join(f"{place} at {min(each)}" for place, each in wanted.items())
            raise StagingLost(f"no records for {timeout_ms} ms; still wanted: {missing}")
        for place, found in fetched.items():
            await _copy(producer, place, found, wanted[place])
            if not wanted[place]:
                del wanted[place]
                consumer.pause(place)


async def _copy(
    producer: Producer,
    place: TopicPartition,
    fetched: FetchedBytes,
    wanted: dict[int, StagedBatch],
) -> None:
    """Send those of the batches that are wanted, which takes them out of `wanted`."""
    last = max(wanted)
    for at, header in iterate_batches(fetched.records):
        staged = wanted.pop(header.base_offset, None)
        if staged is None:
            continue
        if header.record_count != staged.rows:
            raise StagingLost(
                f"{place} has {header.record_count} records at {header.base_offset}, not the "
                f"{staged.rows} that were staged there"
            )
        await producer.send_batch(staged.target, fetched.records[at : at + header.size_bytes])
    if wanted and fetched.next_offset > last:
        raise StagingLost(f"{place} has no batch at {min(wanted)}, where one was staged")


async def clear(admin: Admin, topic: str, staged: Iterable[StagedBatch]) -> None:
    """Delete what was staged up to these, once they are committed."""
    ends: dict[TopicPartition, int] = {}
    for each in staged:
        place = TopicPartition(topic, each.staging_partition)
        ends[place] = max(ends.get(place, 0), each.offset + each.rows)
    if ends:
        await admin.delete_records(ends)
