"""Handles reassignment throttles, which `reassign --throttle` sets and --verify clears.

As in Kafka's tool, the rate is set on every broker that takes part, both as a leader and as a
follower. Each moving topic lists the replicas to which the rate applies. These are the old replicas
on the leader side and the new ones on the follower side, so no in-sync replica is throttled.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from barnabas.client.admin.admin import Admin
from barnabas.client.admin.configs import (
    BROKER,
    TOPIC,
    ConfigOperation,
    ConfigOperationType,
    ConfigResource,
)
from barnabas.client.admin.partition_admin import Reassignment
from barnabas.errors import KafkaError
from barnabas.types import TopicPartition

BROKER_SETTINGS = (
    "leader.replication.throttled.rate",
    "follower.replication.throttled.rate",
    "replica.alter.log.dirs.io.max.bytes.per.second",
)
TOPIC_SETTINGS = (
    "leader.replication.throttled.replicas",
    "follower.replication.throttled.replicas",
)


class Move(NamedTuple):
    """Holds a partition's brokers: those that store it, and those that it is moving to."""

    sources: frozenset[int]
    destinations: frozenset[int]


def moves(
    moving: Mapping[TopicPartition, Reassignment],
    wanted: Mapping[TopicPartition, Sequence[int]],
    actual: Mapping[TopicPartition, Sequence[int]],
) -> dict[TopicPartition, Move]:
    """Return all moves that will be in progress once `wanted` has started, including earlier ones.
    For a partition that is already moving, the sources are its replicas before that move.
    """
    found = {
        name: Move(
            frozenset(reassignment.replicas) - frozenset(reassignment.adding),
            frozenset(reassignment.adding),
        )
        for name, reassignment in moving.items()
    }
    for name, replicas in wanted.items():
        # The replicas of a moving partition include its future ones.
        sources = found[name].sources if name in found else frozenset(actual[name])
        found[name] = Move(sources, frozenset(replicas) - sources)
    return found


def throttled_replicas(moves: Mapping[TopicPartition, Move]) -> dict[str, tuple[str, str]]:
    """Return the values for TOPIC_SETTINGS by topic. They have the form `partition:broker,...`, in
    Kafka's order.
    """
    found: dict[str, tuple[list[str], list[str]]] = {}
    for (topic, partition), move in moves.items():
        leaders, followers = found.setdefault(topic, ([], []))
        leaders += [f"{partition}:{broker}" for broker in move.sources]
        followers += [f"{partition}:{broker}" for broker in move.destinations]
    return {
        topic: (",".join(sorted(leaders)), ",".join(sorted(followers)))
        for topic, (leaders, followers) in sorted(found.items())
    }


def taking_part(moves: Mapping[TopicPartition, Move]) -> list[int]:
    return sorted({each for move in moves.values() for each in move.sources | move.destinations})


async def throttle(admin: Admin, moves: Mapping[TopicPartition, Move], bytes_per_s: int) -> None:
    """Set the throttles. Those on topics are set first, so that no replica copies before the rate
    applies.
    """
    for topic, texts in throttled_replicas(moves).items():
        settings = [
            ConfigOperation(name, ConfigOperationType.SET, text)
            for name, text in zip(TOPIC_SETTINGS, texts, strict=True)
        ]
        await admin.alter_configs(ConfigResource(TOPIC, topic), settings)
    rates = [
        ConfigOperation(name, ConfigOperationType.SET, str(bytes_per_s))
        # The third config applies to moves between directories.
        for name in BROKER_SETTINGS[:2]
    ]
    for broker_id in taking_part(moves):
        await admin.alter_configs(ConfigResource(BROKER, str(broker_id)), rates)


async def throttle_log_dirs(admin: Admin, brokers: Iterable[int], bytes_per_s: int) -> None:
    """Limit the rate of moves between log directories, on the brokers that take part."""
    rate = ConfigOperation(BROKER_SETTINGS[2], ConfigOperationType.SET, str(bytes_per_s))
    for broker_id in sorted(brokers):
        await admin.alter_configs(ConfigResource(BROKER, str(broker_id)), [rate])


async def clear(
    admin: Admin, brokers: Iterable[int], topics: Iterable[str]
) -> dict[ConfigResource, KafkaError]:
    """Clear all throttles of these resources, and return those that failed, with errors."""
    wanted: list[tuple[ConfigResource, Collection[str]]] = [
        *((ConfigResource(BROKER, str(each)), BROKER_SETTINGS) for each in brokers),
        *((ConfigResource(TOPIC, each), TOPIC_SETTINGS) for each in topics),
    ]
    failed = {}
    for resource, names in wanted:
        try:
            await admin.alter_configs(
                resource, [ConfigOperation(name, ConfigOperationType.DELETE) for name in names]
            )
        except KafkaError as error:
            failed[resource] = error
    return failed


def clearing_lines(brokers: Sequence[int], topics: Sequence[str]) -> list[str]:
    """Return the lines that Kafka prints when it clears the throttles."""
    return [
        f"Clearing broker-level throttles on broker{_s(brokers)} {','.join(map(str, brokers))}",
        f"Clearing topic-level throttles on topic{_s(topics)} {','.join(topics)}",
    ]


def _s(names: Sequence[object]) -> str:
    return "s" * (len(names) != 1)
