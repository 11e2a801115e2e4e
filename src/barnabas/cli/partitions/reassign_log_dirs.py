"""Handles the log directories in `reassign` plans, and words the state of moves as Kafka does.

    {"topic":"t","partition":0,"replicas":[1,2],"log_dirs":["any","/disk2/kafka"]}

Each entry applies to the broker at the same position; "any" leaves the replica where it is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import NamedTuple

import click

from barnabas.client.admin.admin import Admin, LogDirDescription
from barnabas.errors import KafkaError, ReplicaNotAvailable
from barnabas.types import TopicPartition

_AGAIN_EVERY_S = 0.1
_BEGINS_WITHIN_S = 10.0

Described = Mapping[int, tuple[LogDirDescription, ...]]


class Replica(NamedTuple):
    """Represents a partition's replica on a broker. Replicas are sorted as in Kafka's tool."""

    broker_id: int
    name: TopicPartition

    def __str__(self) -> str:
        return f"{self.name}-{self.broker_id}"


LogDirs = dict[Replica, str]
"""Maps replicas to the requested log directories."""


class Place(NamedTuple):
    """Holds a replica's log directory, and the directory that it is moving to."""

    current: str | None
    future: str | None

    def is_moving(self) -> bool:
        """Return whether the replica is moving. It counts as moving until it is known to stay. As
        in Kafka, this includes a missing replica, which may still appear.
        """
        return self.current is None or self.future is not None


def places(wanted: LogDirs, found: Described) -> dict[Replica, Place]:
    """Find these replicas in the brokers' responses."""
    return {each: _place(each, found) for each in sorted(wanted)}


def _place(replica: Replica, found: Described) -> Place:
    paths: dict[bool, str] = {}
    for directory in found.get(replica.broker_id, ()):
        there = directory.replicas.get(replica.name)
        if there is not None:
            # A moving replica exists in two directories: as the current log, and as the future log,
            # which is catching up.
            paths[there.is_future] = directory.path
    return Place(paths.get(False), paths.get(True))


def move_lines(wanted: LogDirs, places: Mapping[Replica, Place]) -> list[str]:
    """Return the lines that Kafka prints for the state of the moves."""
    return [_line(each, wanted[each], place) for each, place in places.items()]


def _line(replica: Replica, target: str, place: Place) -> str:
    broker_id, name = replica
    if place.current is None:
        return (
            f"Partition {name} is not found in any live log dir on broker {broker_id}. There is "
            "likely an offline log directory on the broker."
        )
    if place.future == target:
        return f"Reassignment of replica {replica} is still in progress."
    if place.future is not None:
        return (
            f"Partition {name} on broker {broker_id} is being moved to log dir {place.future} "
            f"instead of {target}."
        )
    if place.current == target:
        return f"Reassignment of replica {replica} completed successfully."
    return (
        f"Partition {name} on broker {broker_id} is not being moved from log dir {place.current} "
        f"to {target}."
    )


async def start_moves(admin: Admin, wanted: LogDirs) -> dict[Replica, KafkaError]:
    """Start the moves, and return those that could not be started, with their errors. A replica
    that was just reassigned to its broker may not exist yet, so this waits for it for up to ten
    seconds.
    """
    pending = dict(sorted(wanted.items()))
    ends_at_s = asyncio.get_running_loop().time() + _BEGINS_WITHIN_S
    while True:
        failed = {}
        for broker_id in sorted({each.broker_id for each in pending}):
            paths = {each.name: pending[each] for each in pending if each.broker_id == broker_id}
            outcomes = await admin.alter_replica_log_dirs(broker_id, paths)
            for name, error in sorted(outcomes.items()):
                replica = Replica(broker_id, name)
                if error is not None:
                    failed[replica] = error
                    continue
                click.echo(
                    f"Successfully started moving log directory to {pending.pop(replica)} for "
                    f"replica {name} with broker {broker_id} "
                )
        is_over = asyncio.get_running_loop().time() >= ends_at_s
        # REPLICA_NOT_AVAILABLE means that the broker does not have the replica yet. Return other
        # errors.
        is_final = not all(isinstance(error, ReplicaNotAvailable) for error in failed.values())
        if not failed or is_over or is_final:
            return failed
        await asyncio.sleep(_AGAIN_EVERY_S)
