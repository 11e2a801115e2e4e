"""Implements the four assignors of Kafka's consumer as pure functions (AS-2, AS-3).

    topics (name -> number of partitions), members (with subscriptions) -> assignment

The leader of a group calls the assignor that the members voted for. The result does not depend on
the order in which the members and topics are passed. A topic without partitions is treated as
nonexistent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

from barnabas.client.consumer.group_protocol import GroupAssignment, GroupMember
from barnabas.client.consumer.sticky_assignor import assign_sticky, withhold_moving
from barnabas.errors import ConfigError
from barnabas.types import TopicPartition

Assign = Callable[[Mapping[str, int], Sequence[GroupMember]], GroupAssignment]


class Assignor(NamedTuple):
    name: str  # the name that members vote for
    java_name: str  # the name of Kafka's class, which `partition.assignment.strategy` also accepts
    assign: Assign
    is_cooperative: bool = False  # members keep their partitions while they join (KIP-429)


def assign_range(topics: Mapping[str, int], members: Sequence[GroupMember]) -> GroupAssignment:
    """Assign each subscriber a range of each topic. The first few share the remainder (AS-2)."""
    assignment = _nothing(members)
    ranked = sorted(members, key=lambda member: member.rank)
    subscribed: dict[str, list[GroupMember]] = {}
    for member in ranked:
        for topic in dict.fromkeys(member.topics):
            subscribed.setdefault(topic, []).append(member)
    for topic in sorted(topics):
        subscribers = subscribed.get(topic)
        if not subscribers:
            continue
        # Topics are assigned separately, as in Kafka, so with k topics, the first members receive
        # up to k more partitions (AS-2).
        share, rest = divmod(topics[topic], len(subscribers))
        start = 0
        for place, member in enumerate(subscribers):
            end = start + share + (place < rest)
            assignment[member.member_id] += _partitions(topic, range(start, end))
            start = end
    return assignment


def assign_roundrobin(topics: Mapping[str, int], members: Sequence[GroupMember]) -> GroupAssignment:
    """Deal out all partitions of all topics, skipping members that are not subscribed (AS-3)."""
    partitions = [
        partition
        for topic in sorted(topics)
        for partition in _partitions(topic, range(topics[topic]))
    ]
    return deal(partitions, sorted(members, key=lambda member: member.rank))


def deal(partitions: Sequence[TopicPartition], members: Sequence[GroupMember]) -> GroupAssignment:
    """Deal the partitions out to the members, taking both in the given order."""
    assignment = _nothing(members)
    subscribed = [frozenset(member.topics) for member in members]
    turn = 0
    for partition in partitions:
        # The next turn goes to the member after the one that took the last partition. A member
        # skipped because it is not subscribed does not lose its later turns (AS-3).
        for step in range(len(members)):
            place = (turn + step) % len(members)
            if partition.topic in subscribed[place]:
                assignment[members[place].member_id].append(partition)
                turn = place + 1
                break
    return assignment


def assign_cooperatively(
    topics: Mapping[str, int], members: Sequence[GroupMember]
) -> GroupAssignment:
    """Assign like the sticky assignor, but withhold partitions until they are revoked (AS-6).

    The old owner no longer finds the partition in its assignment, so it revokes the partition and
    rejoins. The rebalance that follows assigns the partition to the new owner (KIP-429).
    """
    return withhold_moving(assign_sticky(topics, members), members)


ASSIGNORS: Final[Mapping[str, Assignor]] = MappingProxyType(
    {
        assignor.name: assignor
        for assignor in (
            Assignor("range", "org.apache.kafka.clients.consumer.RangeAssignor", assign_range),
            Assignor(
                "roundrobin",
                "org.apache.kafka.clients.consumer.RoundRobinAssignor",
                assign_roundrobin,
            ),
            Assignor("sticky", "org.apache.kafka.clients.consumer.StickyAssignor", assign_sticky),
            Assignor(
                "cooperative-sticky",
                "org.apache.kafka.clients.consumer.CooperativeStickyAssignor",
                assign_cooperatively,
                is_cooperative=True,
            ),
        )
    }
)


def chosen_assignors(strategy: str) -> tuple[Assignor, ...]:
    """Return the assignors in `partition.assignment.strategy`, in order of preference.

    The option is a comma-separated list of assignor names or of Kafka's class names. Raises
    ConfigError.
    """
    by_name = {**ASSIGNORS, **{assignor.java_name: assignor for assignor in ASSIGNORS.values()}}
    chosen: dict[str, Assignor] = {}
    for name in (name.strip() for name in strategy.split(",")):
        if name not in by_name:
            raise ConfigError(
                f"partition.assignment.strategy: {name!r} is not one of {', '.join(ASSIGNORS)}, "
                "nor the name of the corresponding class in Kafka"
            )
        chosen[by_name[name].name] = by_name[name]
    return tuple(chosen.values())


def _nothing(members: Sequence[GroupMember]) -> GroupAssignment:
    return {member.member_id: [] for member in members}


def _partitions(topic: str, numbers: range) -> list[TopicPartition]:
    return [TopicPartition(topic, number) for number in numbers]
