"""Requests the committed offsets of groups, and finds the partitions that the groups read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from barnabas.client.admin.admin import Admin
from barnabas.client.admin.group_admin import GroupDescription
from barnabas.client.consumer.committed import OffsetAndMetadata
from barnabas.protocol.consumer_protocol import CONSUMER_PROTOCOL
from barnabas.types import TopicPartition

DEAD: Final = "Dead"
"""The state of a group that does not exist."""


class Readings(NamedTuple):
    """The offsets that groups have committed and the partitions that they read, by group id.

    `led` contains those of their partitions that have a leader. Without a leader, the end of a
    partition is unknown, and a request for it would fail.
    """

    committed: Mapping[str, Mapping[TopicPartition, OffsetAndMetadata]]
    read: Mapping[str, list[TopicPartition]]
    led: set[TopicPartition]


async def readings(admin: Admin, groups: list[GroupDescription]) -> Readings:
    """Return the offsets that these groups have committed and the partitions that they read."""
    committed = {
        group.group_id: {}
        # A nonexistent group has no offsets, and a request for them would fail.
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


async def offsets_at(
    admin: Admin, partitions: Iterable[TopicPartition], when: int
) -> dict[TopicPartition, int]:
    """Return the offset of each partition at a time in milliseconds, LATEST or EARLIEST."""
    found = await admin.list_offsets(dict.fromkeys(partitions, when))
    return {name: at.offset for name, at in found.items()}


def read_partitions(
    group: GroupDescription,
    committed: Mapping[TopicPartition, OffsetAndMetadata],
    topics: Mapping[str, list[int]],
) -> list[TopicPartition]:
    """Return a group's partitions: those assigned, those with commits, and those in its topics.

    A subscribed group reads whole topics. A group without members is assumed to read the topics for
    which it has committed offsets. `topics` contains the topics that exist, with their partition
    numbers.
    """
    found = {name for member in group.members for name in member.partitions} | set(committed)
    # In other protocols, such as Connect's, the subscribed topics are unknown.
    if group.protocol_type == CONSUMER_PROTOCOL:
        subscribed = {topic for member in group.members for topic in member.topics}
        # Members may have only some of the partitions so far; the group will read all of them.
        whole = subscribed if group.members else {name.topic for name in committed}
        found |= {TopicPartition(topic, n) for topic in whole for n in topics.get(topic, ())}
    return sorted(found)
