"""Manages the staging topic, where encoded rows wait for the commit of their micro-batch.

    task: rows -> batches, one target partition each -> staging topic, at least once -> their places
    driver, in commit: places -> the same batches -> target partitions, in one transaction

A task may run twice, speculatively or after a failure, and a replay may split tasks differently.
Therefore, only the batches whose places reach the driver are used; everything else in the staging
topic is ignored. Batches older than a committed micro-batch are deleted. The batches left by a
query that has ended expire after a day.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from barnabas.client.admin.admin import Admin, NewTopic
from barnabas.client.consumer.consumer import Consumer
from barnabas.client.consumer.fetched import FetchedBytes
from barnabas.client.errors import NoOffsetForPartition, UnknownPartition
from barnabas.client.producer.murmur2 import partition_for_key
from barnabas.client.producer.producer import Producer
from barnabas.counted import counted
from barnabas.errors import (
    BarnabasError,
    ConfigError,
    LeaderNotAvailable,
    TopicAlreadyExists,
    UnknownTopicOrPartition,
)
from barnabas.records.batch import iterate_batches
from barnabas.types import TopicPartition

_PARTITIONS: Final = 8
_CONFIGS: Final = {
    "cleanup.policy": "delete",
    "retention.ms": str(24 * 3_600_000),
    "compression.type": "producer",
    "max.message.bytes": str(8 << 20),
}
# A deleted topic must not be recreated with the brokers' defaults, such as a single partition.
CREATES_NOTHING: Final = {"allow.auto.create.topics": "false"}


class StagedBatch(NamedTuple):
    """A record batch in the staging topic, and the partition to which it will be copied."""

    staging_partition: int
    offset: int  # of its first record, in the staging topic
    target: TopicPartition
    rows: int


class StagingLost(BarnabasError):
    """Staged rows no longer exist, so the micro-batch must run again."""


def staging_topic(transactional_id: str) -> str:
    return f"{transactional_id}-staging"


def partition_of(target: TopicPartition) -> int:
    """Return the staging partition for a target partition. The result is always the same, so that a
    task's rows stay in order."""
    return partition_for_key(f"{target.topic}-{target.partition}".encode(), _PARTITIONS)


async def create(admin: Admin, topic: str) -> None:
    """Create the staging topic if it does not exist.

    Raises `ConfigError` if another program has created a topic with this name.
    """
    try:
        await admin.create_topics([NewTopic(topic, _PARTITIONS, configs=_CONFIGS)])
    except TopicAlreadyExists:
        # Another task may just have created the topic, and the broker may not yet know it.
        with contextlib.suppress(UnknownTopicOrPartition, LeaderNotAvailable):
            (found,) = await admin.describe_topics([topic])
            if len(found.partitions) != _PARTITIONS:
                raise ConfigError(
                    f"topic {topic} has {counted(len(found.partitions), 'partition')}, but a "
                    f"staging topic has {_PARTITIONS}: it was not created by this sink. Delete "
                    "it, which also deletes the query's progress; it is then created again"
                ) from None


async def copy(
    consumer: Consumer,
    producer: Producer,
    topic: str,
    staged: Iterable[StagedBatch],
    timeout_ms: int,
) -> None:
    """Send the staged batches to their targets, in order, and return when all are queued.

    Raises `StagingLost`.
    """
    wanted: dict[TopicPartition, dict[int, StagedBatch]] = {}
    for each in sorted(staged):
        place = TopicPartition(topic, each.staging_partition)
        wanted.setdefault(place, {})[each.offset] = each
    with _missing(topic):
        # A fetch from a deleted topic would only time out; this detects the deletion in a second.
        await consumer.partitions_for(topic)
    consumer.assign(list(wanted))
    for place, batches in wanted.items():
        consumer.seek(place, min(batches))
    while wanted:
        with _missing(topic):
            fetched = await consumer.fetch_batches(timeout_ms)
        if not fetched:
            missing = ", ".join(f"{place} at {min(each)}" for place, each in wanted.items())
            raise StagingLost(f"no records for {timeout_ms} ms; still missing: {missing}")
        for place, found in fetched.items():
            await _copy(producer, place, found, wanted[place])
            if not wanted[place]:
                del wanted[place]
                # This partition is finished; fetching more from it would delay the others.
                consumer.pause(place)


@contextlib.contextmanager
def _missing(topic: str) -> Iterator[None]:
    try:
        yield
    except (NoOffsetForPartition, UnknownPartition, UnknownTopicOrPartition) as error:
        raise StagingLost(
            f"{topic}: {error}; the staged rows were deleted, or have expired. The micro-batch has "
            "to run again: restart the query"
        ) from None


async def _copy(
    producer: Producer,
    place: TopicPartition,
    fetched: FetchedBytes,
    wanted: dict[int, StagedBatch],
) -> None:
    """Send the wanted batches, and remove them from `wanted`."""
    last = max(wanted)
    for at, header in iterate_batches(fetched.records):
        staged = wanted.pop(header.base_offset, None)
        # This batch is from another attempt or micro-batch, because it is not listed in any commit
        # message.
        if staged is None:
            continue
        if header.record_count != staged.rows:
            raise StagingLost(
                f"{place} has {counted(header.record_count, 'record')} at {header.base_offset}, "
                f"but {staged.rows} were staged"
            )
        await producer.send_batch(staged.target, fetched.records[at : at + header.size_bytes])
    # The fetch has passed the last place, so the batches that are still wanted do not exist.
    if wanted and fetched.next_offset > last:
        raise StagingLost(f"{place} has no batch at {min(wanted)}, where one was staged")


async def clear(admin: Admin, topic: str, staged: Iterable[StagedBatch]) -> None:
    """Delete the staged batches up to and including these committed ones."""
    ends: dict[TopicPartition, int] = {}
    for each in staged:
        place = TopicPartition(topic, each.staging_partition)
        ends[place] = max(ends.get(place, 0), each.offset + each.rows)
    if ends:
        await admin.delete_records(ends)
