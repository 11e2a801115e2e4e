"""Validates new topics (their names, replicas and configs) and added partitions.

A request is checked completely before anything is written, so it has no effect if it is rejected.
The rules and errors are the same as in Kafka; the maximum number of partitions is taken from
Kafka's KRaft controller.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from barnabas.config import LogConfig
from barnabas.controller.placement import Assignment
from barnabas.counted import counted
from barnabas.errors import (
    ConfigError,
    InvalidConfig,
    InvalidPartitions,
    InvalidReplicaAssignment,
    InvalidTopic,
    PolicyViolation,
)

MAX_NEW_PARTITIONS = 10_000
"""The maximum number of partitions that one request can create in a topic.

Each partition is a directory, and one request must not be able to fill the disk.
"""

_NO_CONFIGS: Mapping[str, str] = MappingProxyType({})


class NewTopic(NamedTuple):
    """A topic to be created. If `assignment` is given, the two numbers are ignored."""

    name: str
    partitions: int = 1
    replication_factor: int = 1
    assignment: Assignment | None = None
    configs: Mapping[str, str] = _NO_CONFIGS
    cause: str = ""
    """The request that needs the topic, as text for the controller's event."""


def may_collide(name: str) -> bool:
    """Return whether the name contains `.` or `_`, so that another name may collide with it."""
    return "." in name or "_" in name


def check_collision(name: str, existing: Iterable[str]) -> None:
    """Raise InvalidTopic if the name differs from that of an existing topic only in `.` and `_`.

    Both characters become `_` in the name of a metric, so the two topics would have the same
    metrics.
    """
    if not may_collide(name):
        return
    key = _metric_name(name)
    for other in existing:
        # If the names are equal, the caller raises TOPIC_ALREADY_EXISTS instead.
        if other != name and may_collide(other) and _metric_name(other) == key:
            raise InvalidTopic(
                f"topic name {name!r} collides with {other!r}: they differ only in '.' and '_'"
            )


def check_new_partitions(count: int) -> None:
    """Raise PolicyViolation if one request may not create this many partitions."""
    if count > MAX_NEW_PARTITIONS:
        raise PolicyViolation(
            f"{count} partitions at once; at most {MAX_NEW_PARTITIONS} are allowed, so create "
            "them in several steps"
        )


def check_assignment(assignment: Assignment, live_brokers: Iterable[int]) -> None:
    """Check the replicas that a client has assigned. Raises InvalidReplicaAssignment."""
    live = set(live_brokers)
    check_new_partitions(len(assignment))
    # TP-3: partition numbers start at 0 and have no gaps.
    if sorted(assignment) != list(range(len(assignment))) or not assignment:
        raise InvalidReplicaAssignment("partitions must be numbered from 0 without gaps")
    factors = {len(replicas) for replicas in assignment.values()}
    if factors == {0} or len(factors) > 1:
        raise InvalidReplicaAssignment(
            "all partitions must have the same number of replicas, at least 1"
        )
    for partition, replicas in sorted(assignment.items()):
        if len(set(replicas)) < len(replicas):
            raise InvalidReplicaAssignment(f"partition {partition} lists a broker twice")
        missing = sorted(set(replicas) - live)
        if missing:
            raise InvalidReplicaAssignment(f"partition {partition}: brokers {missing} are not live")


def check_growth(topic: str, existing: int, total: int) -> None:
    """Check whether a topic can grow to `total` partitions. Raises InvalidPartitions (TP-5)."""
    # TP-5: the number of partitions cannot be reduced, because records would be lost.
    if total < existing:
        raise InvalidPartitions(
            f"topic {topic} has {counted(existing, 'partition')}, more than {total}: "
            "their number can only be increased"
        )
    if total == existing:
        raise InvalidPartitions(f"topic {topic} already has {counted(existing, 'partition')}")
    check_new_partitions(total - existing)


def check_added_replicas(
    existing: Mapping[int, Sequence[int]],
    added: Sequence[Sequence[int]],
    total: int,
    live_brokers: Iterable[int],
) -> Assignment:
    """Check the replicas that a client has assigned to new partitions.

    Raises InvalidReplicaAssignment.
    """
    missing = sorted({broker for replicas in added for broker in replicas}.difference(live_brokers))
    if missing:
        raise InvalidReplicaAssignment(f"brokers {missing} are not live")
    if len(added) != total - len(existing):
        raise InvalidReplicaAssignment(
            f"{counted(total - len(existing), 'partition')} to add, but replicas are given for "
            f"{len(added)}"
        )
    factor = len(existing[0])
    for partition, replicas in enumerate(added, len(existing)):
        if len(set(replicas)) < len(replicas):
            raise InvalidReplicaAssignment(f"partition {partition} lists a broker twice")
        if len(replicas) != factor:
            raise InvalidReplicaAssignment(
                f"partition {partition} has {counted(len(replicas), 'replica')}, but partition 0 "
                f"has {factor}"
            )
    return {number: list(replicas) for number, replicas in enumerate(added, len(existing))}


def check_config(configs: Mapping[str, str]) -> None:
    """Check the configs of a new topic.

    Raises InvalidConfig, which names the key and the allowed values.
    """
    try:
        LogConfig().with_overrides(configs)
    except ConfigError as error:
        raise InvalidConfig(str(error)) from None


def _metric_name(name: str) -> str:
    return name.replace(".", "_")
