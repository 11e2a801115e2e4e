"""Determines which partitions a rebalance moved from one member to another.

Only the assignments of consumer groups can be decoded (`ConsumerProtocol`). For other groups, this
module can only tell which members' bytes have changed. It is pure: it compares two sets of
assignments.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from barnabas.errors import CorruptData
from barnabas.protocol.consumer_protocol import (
    ConsumerProtocolAssignment,
    decode_consumer_protocol,
)
from barnabas.types import TopicPartition

MOST_COMPARED_BYTES: Final = 65_536
"""Larger assignments are not decoded, because that would block the broker for milliseconds."""

UNKNOWN: Final = -1

Assignments = Mapping[str, bytes]
"""Maps a member's name to its assignment."""


class Movement(NamedTuple):
    """The numbers of partitions that changed owner in a rebalance."""

    moved: int
    """The number of partitions that moved from one owner to another, or UNKNOWN."""
    taken: int
    """The number of partitions that were taken from their owner and now have none (KIP-429)."""
    given: int
    """The number of partitions that had no owner before and now have one."""
    total: int
    """The number of partitions that now have an owner."""
    moves: tuple[tuple[TopicPartition, str, str], ...]
    """The moved partitions as tuples (partition, from, to), sorted by topic and partition."""
    is_harmless: bool
    """True if no partition was taken from a member, so no member had to stop working."""


def movement(is_consumers: bool, before: Assignments, after: Assignments) -> Movement:
    """Compare the assignments of two generations. `is_consumers` is true for a consumer group."""
    changed = [name for name in {**before, **after} if before.get(name) != after.get(name)]
    kept_all = all(not before.get(name) for name in changed)
    # Kafka Connect and other types of group have their own assignment formats.
    if not is_consumers:
        return Movement(UNKNOWN, 0, 0, 0, (), kept_all)
    size = sum(map(len, before.values())) + sum(map(len, after.values()))
    if size > MOST_COMPARED_BYTES:
        return Movement(UNKNOWN, 0, 0, 0, (), kept_all)
    try:
        old, new = _owners(before), _owners(after)
    except CorruptData:
        return Movement(UNKNOWN, 0, 0, 0, (), kept_all)
    moves = tuple(
        (partition, old[partition], owner)
        for partition, owner in sorted(new.items())
        if partition in old and old[partition] != owner
    )
    taken = sum(partition not in new for partition in old)
    given = sum(partition not in old for partition in new)
    return Movement(len(moves), taken, given, len(new), moves, not moves and not taken)


def _owners(assignments: Assignments) -> dict[TopicPartition, str]:
    owners: dict[TopicPartition, str] = {}
    for name, data in assignments.items():
        if not data:
            continue  # the leader assigned no partitions to this member
        _, assignment = decode_consumer_protocol(ConsumerProtocolAssignment, data)
        for topic in assignment.assigned_partitions:
            for partition in topic.partitions:
                owners[TopicPartition(topic.topic, partition)] = name
    return owners
