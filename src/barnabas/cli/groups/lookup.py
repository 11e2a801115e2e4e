"""Looks up the lag of groups: their committed offsets, and the ends of the partitions that they
read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from barnabas.cli.groups.rows import DEAD, DescribedGroup, group_rows, read_partitions
from barnabas.client.admin.admin import Admin
from barnabas.client.admin.group_admin import GroupDescription
from barnabas.client.consumer.committed import OffsetAndMetadata
from barnabas.client.offsets import EARLIEST, LATEST
from barnabas.types import TopicPartition


class Readings(NamedTuple):
    """Describes what groups have committed and read, by group id.

    `led` contains the partitions of these that have a leader: without one, the end of a partition
    is unknown, and a request for it would cause an error.
    """

    committed: Mapping[str, Mapping[TopicPartition, OffsetAndMetadata]]
    read: Mapping[str, list[TopicPartition]]
    led: set[TopicPartition]


async def readings(admin: Admin, groups: list[GroupDescription]) -> Readings:
    """Return what these groups have committed and read."""
    committed = {
        group.group_id: {}
        # A nonexistent group has no offsets, and a request for them would cause an error.
        if group.state == DEAD
        else await admin.list_group_offsets(group.group_id)
        for group in groups
    }
    topics = await admin.describe_topics()
    numbers = {topic.name: [each.partition for each in topic.partitions] for topic in topics}
    led = {
        TopicPartition(topic.name, each.partition)
        for topic in topics
        for each in topic.partitions
        if each.leader >= 0
    }
    read = {
        group.group_id: read_partitions(group, committed[group.group_id], numbers)
        for group in groups
    }
    return Readings(committed, read, {name for own in read.values() for name in own} & led)


async def look_up(admin: Admin, groups: list[GroupDescription]) -> list[DescribedGroup]:
    """Return each group with its rows. A partition without a leader has no end, and therefore no
    lag.

    Each end is looked up only once, however many groups read the partition.
    """
    committed, read, led = await readings(admin, groups)
    uncommitted = {
        name for group_id, own in read.items() for name in own if name not in committed[group_id]
    }
    ends = await offsets_at(admin, led, LATEST)
    # The start of a log matters only if no offset is committed.
    starts = await offsets_at(admin, led & uncommitted, EARLIEST)
    described = []
    for group in groups:
        own = committed[group.group_id]
        rows = group_rows(group, own, read[group.group_id], starts, ends)
        described.append(DescribedGroup(group, own, rows))
    return described


async def offsets_at(
    admin: Admin, partitions: Iterable[TopicPartition], when: int
) -> dict[TopicPartition, int]:
    """Return the offset of each partition at a time in milliseconds, or at LATEST or EARLIEST."""
    found = await admin.list_offsets(dict.fromkeys(partitions, when))
    return {name: at.offset for name, at in found.items()}


async def partition_numbers(admin: Admin) -> dict[str, list[int]]:
    """Return the partitions of every topic."""
    return {
        topic.name: [each.partition for each in topic.partitions]
        for topic in await admin.describe_topics()
    }
