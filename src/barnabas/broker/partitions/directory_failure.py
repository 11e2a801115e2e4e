"""Takes a log directory offline when its disk fails, and reports the failure to the controller
(ST-10).

    an operation fails --> on_error --> the store closes the directory
                                    --> its replicas are removed: clients get KAFKA_STORAGE_ERROR
                                    --> the queue --> FailureReports --> the controller (KIP-112)

The other log directories and their logs are not affected. When its last directory has failed, the
broker itself fails. Running out of file descriptors is not a disk failure, so such an error is
ignored and the caller tries again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from barnabas.counted import counted
from barnabas.errors import KafkaStorageError
from barnabas.events import Event
from barnabas.named_tuple import NamedTuple
from barnabas.storage.log_health import LogAbandoned

if TYPE_CHECKING:
    from barnabas.broker.partitions.replica import Replica
    from barnabas.broker.partitions.replica_removal import ReplicaRemoval
    from barnabas.storage.store import LogStore
    from barnabas.types import TopicPartition

_log = logging.getLogger(__name__)

_REPAIR = "repair the disk and restart the broker"

Report = Callable[[Sequence["TopicPartition"]], Awaitable[None]]
"""Tells the controller that this broker has lost these partitions."""


class FailedDirectory(NamedTuple):
    """A log directory that has failed, and the partitions that went offline with it."""

    path: Path
    partitions: Sequence[TopicPartition]


class DirectoryFailures:
    """Takes the log directories of one broker offline."""

    __slots__ = ("queue", "removal")

    def __init__(self, removal: ReplicaRemoval) -> None:
        self.removal = removal
        self.queue: asyncio.Queue[FailedDirectory] = asyncio.Queue()
        """The failures that have yet to be reported to the controller."""

    def on_replica_error(self, replica: Replica, error: OSError) -> None:
        """Take the log directory of a replica offline because a disk operation on the replica
        failed.

        An error from a replica that is no longer hosted is ignored. Its log was deleted or failed
        earlier, so any log with that name is not the log in which the error occurred.
        """
        replicas = self.removal.replicas
        if replicas.is_short_of_descriptors(error):
            return  # because no disk has failed
        if replicas.hosts(replica) and not isinstance(error, LogAbandoned):
            directory = replicas.store.directory_of(replica.topic_partition)
            self.on_error(directory, error)

    def on_error(self, directory: Path, error: OSError) -> None:
        """Take a log directory and all its partitions offline because an operation in the directory
        failed. An error caused by a lack of file descriptors is ignored, because it is not a disk
        failure.
        """
        replicas = self.removal.replicas
        store = replicas.store
        if replicas.is_short_of_descriptors(error):
            return
        if directory not in store.directories.online:
            return  # because the failure is already known
        names = store.fail_directory(directory, error)
        lost = counted(len(names), "partition")
        line = f"log directory {directory} is offline, and {lost} with it: {error}; {_REPAIR}"
        _log.error("%s", line)
        broker_id = replicas.view.broker_id
        replicas.events.add(
            Event(
                "directory-lost",
                line,
                str(error),
                broker=broker_id,
                is_harmless=not names,
                advice=_REPAIR,
                is_warning=True,
            )
        )
        # Lookups then raise KAFKA_STORAGE_ERROR rather than NOT_LEADER_OR_FOLLOWER.
        replicas.mark_offline(*names)
        removed = [replica for name in names if (replica := replicas.get(name)) is not None]
        for replica in removed:
            name = replica.topic_partition
            reason = KafkaStorageError(f"the log directory of {name} is offline")
            self.removal.remove(replica, reason)
        self.queue.put_nowait(FailedDirectory(directory, names))


class FailureReports:
    """Reports failed directories to the controller, from `start` until `close`."""

    __slots__ = ("_failed", "_logs", "_queue", "_report", "_tasks")

    def __init__(
        self,
        queue: asyncio.Queue[FailedDirectory],
        logs: LogStore,
        report: Report,
        failed: asyncio.Future[str],
    ) -> None:
        """`failed` is set to the reason if this broker cannot continue."""
        self._queue = queue
        self._logs = logs
        self._report = report
        self._failed = failed
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self) -> None:
        self._begin(self._run())

    def close(self) -> None:
        """Stop reporting failed directories."""
        for task in list(self._tasks):
            task.cancel()

    async def _run(self) -> None:
        while True:
            directory = await self._queue.get()
            if self._logs.directories.online:
                # Use a separate task, because the metadata store may be slow and the next failure
                # must not wait for it.
                self._begin(self._report(directory.partitions))
            elif not self._failed.done():
                self._failed.set_result(
                    f"all log directories have failed, the last one was {directory.path}: see "
                    "the log above, repair the disk and restart the broker"
                )

    def _begin(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
