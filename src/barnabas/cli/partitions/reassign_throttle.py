"""How fast a reassignment may copy: what `reassign --throttle` sets, and what --verify clears.

As Kafka's tool does it: the rate goes to every broker that takes part, for both of its sides; to
each topic that moves goes which replicas it counts for, those that were there before as the
leaders' and those that are new as the followers'. So whoever is in sync is held up nowhere.
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
    """Of one partition: the brokers that have it, and those that get it."""

    sources: frozenset[int]
    destinations: frozenset[int]


def moves(
    moving: Mapping[TopicPartition, Reassignment],
    wanted: Mapping[TopicPartition, Sequence[int]],
    actual: Mapping[TopicPartition, Sequence[int]],
) -> dict[TopicPartition, Move]:
    """All that move once `wanted` is under way, with what moves already.

    Of a partition that moves already, what it had before is the source, whatever it has by now.
    """
    found = {
        name: Move(
            frozenset(reassignment.replicas) - frozenset(reassignment.adding),
            frozenset(reassignment.adding),
        )
        for name, reassignment in moving.items()
    }
    for name, replicas in wanted.items():
        sources = found[name].sources if name in found else frozenset(actual[name])
        found[name] = Move(sources, frozenset(replicas) - sources)
    return found


def throttled_replicas(moves: Mapping[TopicPartition, Move]) -> dict[str, tuple[str, str]]:
    """What TOPIC_SETTINGS are to be, by topic: `partition:broker,...`, in Kafka's order."""
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
    """Which replicas first, so that none is on its way before it is counted."""
    for topic, texts in throttled_replicas(moves).items():
        settings = [
            ConfigOperation(name, ConfigOperationType.SET, text)
            for name, text in zip(TOPIC_SETTINGS, texts, strict=True)
        ]
        await admin.alter_configs(ConfigResource(TOPIC, topic), settings)
    rates = [
        ConfigOperation(name, ConfigOperationType.SET, str(bytes_per_s))
        for name in BROKER_SETTINGS[:2]
    ]
    for broker_id in taking_part(moves):
        await admin.alter_configs(ConfigResource(BROKER, str(broker_id)), rates)


async def clear(
    admin: Admin, brokers: Iterable[int], topics: Iterable[str]
) -> dict[ConfigResource, KafkaError]:
    """Every throttle of these, whoever has set it; what could not be cleared, and why."""
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
    """Kafka's words for it."""
    return [
        f"Clearing broker-level throttles on broker{_s(brokers)} {','.join(map(str, brokers))}",
        f"Clearing topic-level throttles on topic{_s(topics)} {','.join(topics)}",
    ]


def _s(names: Sequence[object]) -> str:
    return "s" * (len(names) != 1)
