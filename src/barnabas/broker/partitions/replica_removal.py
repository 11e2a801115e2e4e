"""Removes replicas from this broker: stopped or moved by the controller, or lost with a disk.

A log directory that fails takes its partitions offline and nothing else (ST-10): they answer
KAFKA_STORAGE_ERROR from then on, and the failure is queued for the one that reports it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from barnabas.cluster.image import NO_LEADER
from barnabas.counted import counted
from barnabas.errors import KafkaError, KafkaStorageError
from barnabas.storage.abandoned import LogAbandoned

if TYPE_CHECKING:
    from barnabas.broker.partitions.replica import Replica
    from barnabas.broker.partitions.replica_listener import ReplicaListener
    from barnabas.broker.partitions.replicas import Replicas
    from barnabas.types import TopicPartition

_log = logging.getLogger(__name__)


class FailedDirectory(NamedTuple):
    """A log directory that has failed, and the partitions that went offline with it."""

    path: Path
    partitions: Sequence[TopicPartition]


def follows(replica: Replica) -> bool:
    """Whether it has a leader to fetch from."""
    return not replica.partition.is_leader and replica.partition.leader != NO_LEADER


class ReplicaRemoval:
    """The one way by which a replica is hosted no longer."""

    __slots__ = ("_listeners", "failed_directories", "replicas")

    def __init__(self, replicas: Replicas, listeners: Sequence[ReplicaListener]) -> None:
        self.replicas = replicas
        self._listeners = listeners
        self.failed_directories: asyncio.Queue[FailedDirectory] = asyncio.Queue()
        """To be reported to the controller."""

    def remove(self, replica: Replica, reason: KafkaError | None = None) -> None:
        """Host it no longer; its log stays where it is. `reason`: for requests that wait."""
        self.replicas.remove(replica)
        for listener in self._listeners:
            if follows(replica):
                listener.unfollowing(replica)
            listener.left(replica)
        replica.stopped(reason)

    def fail(self, replica: Replica, error: OSError) -> None:
        """The disk under a replica refused: all of its directory goes offline.

        An error of one that is hosted no longer says nothing of any disk: its log was deleted, or
        has failed before, and the log of that name is another one.
        """
        if self.replicas.is_short_of_descriptors(error):
            return  # nothing has failed
        if self.replicas.hosts(replica) and not isinstance(error, LogAbandoned):
            directory = self.replicas.store.directory_of(replica.topic_partition)
            self.directory_failed(directory, error)

    def directory_failed(self, directory: Path, error: OSError) -> None:
        """Take a log directory offline, and every partition in it.

        Unless there was no file descriptor to reach it with: nothing has failed then.
        """
        replicas, store = self.replicas, self.replicas.store
        if replicas.is_short_of_descriptors(error):
            return
        if directory not in store.online_directories:
            return  # that is known
        names = store.fail_directory(directory, error)
        _log.error(
            "log directory %s is offline, and %s with it: %s; repair the disk and "
            "restart the broker",
            directory,
            counted(len(names), "partition"),
            error,
        )
        replicas.went_offline(*names)
        lost = [replica for name in names if (replica := replicas.get(name)) is not None]
        for replica in lost:
            name = replica.topic_partition
            self.remove(replica, KafkaStorageError(f"the log directory of {name} is offline"))
        self.failed_directories.put_nowait(FailedDirectory(directory, names))
