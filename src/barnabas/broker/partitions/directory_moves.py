"""Moves replicas between this broker's log directories without interrupting service (KIP-113).

Each move has its own task (`replica_mover`). The number of moves that run at once is limited to the
number of directories, and other moves wait for their turn. After a restart, a move continues when
the first LeaderAndIsr arrives.

If the target fails, the move ends and the target directory goes offline. If the source fails, the
replica goes offline, as it does after any disk failure.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from barnabas.broker.partitions.mover_parts import MoverParts
from barnabas.broker.partitions.replica_listener import ReplicaListener
from barnabas.broker.runtime.disk_threads import run_in
from barnabas.errors import (
    InvalidTopic,
    KafkaStorageError,
    LogDirNotFound,
    NotLeaderOrFollower,
    ReplicaNotAvailable,
)
from barnabas.shielded import shielded
from barnabas.storage.directory import DirectoryError, future_name_fits

if TYPE_CHECKING:
    from barnabas.broker.partitions.directory_failure import DirectoryFailures
    from barnabas.broker.partitions.replica import Replica
    from barnabas.broker.partitions.throttles import Throttles
    from barnabas.clock import Random
    from barnabas.types import TopicPartition

_log = logging.getLogger(__name__)

_LEFT_WITHIN_S = 10.0


class DirectoryMoves(ReplicaListener):
    """Runs the moves of one broker until they are complete.

    `stop` suspends them until the broker starts again.
    """

    def __init__(
        self,
        failures: DirectoryFailures,
        listeners: Sequence[ReplicaListener],
        throttles: Throttles,
        random: Random,
    ) -> None:
        self._replicas = failures.removal.replicas
        self._store = self._replicas.store
        self._failures = failures
        self._random = random
        self._tasks: dict[TopicPartition, asyncio.Task[None]] = {}
        self._leaving: set[TopicPartition] = set()  # moves whose switch is not yet on disk
        self._stopping = asyncio.Event()
        self._parts = MoverParts(failures, listeners, throttles, self._stopping, self._leaving)
        self._turns = asyncio.Semaphore(max(1, len(self._store.directories.online)))

    @property
    def under_way(self) -> frozenset[TopicPartition]:
        """Return the partitions that are being moved or are waiting for their turn."""
        return frozenset(self._tasks)

    async def stop(self) -> None:
        """Stop all copying and wait until it has ended.

        The moves continue when the broker starts again.
        """
        self._stopping.set()
        for task in list(self._tasks.values()):
            await task

    # --- requests --------------------------------------------------------------------------------

    async def alter(self, name: TopicPartition, log_dir: str) -> None:
        """Start moving a replica to a directory.

        If the replica does not exist yet, store the directory for it.

        Any other move of the replica is cancelled, even if the replica is already in this
        directory. Raises InvalidTopic (if the name is too long), LogDirNotFound, KafkaStorageError,
        ReplicaNotAvailable or UnknownTopicOrPartition. The controller's requests must wait until
        this method returns.
        """
        # The directory name of a future replica is longer, because it ends in a unique id and
        # `-future`.
        if not future_name_fits(name):
            raise InvalidTopic(
                f"the name of topic {name.topic} is too long for the directory of a replica "
                "that is being moved"
            )
        path, store = self._path(log_dir), self._store
        replica = self._replicas.get(name)
        if replica is None:
            if not self._replicas.is_offline(name) and name not in store.logs:
                # KIP-113 allows clients to choose a directory for a replica that does not exist
                # yet.
                store.moves.prefer(name, path)
            try:
                replica = self._replicas.replica_of(name)
            except NotLeaderOrFollower as error:
                raise ReplicaNotAvailable(f"{error}; it will be created in {log_dir}") from error
        target = store.futures.home(name)
        # The latest request takes precedence.
        if target is not None and target.path != path:
            self._drop(name)
        if store.directory_of(name) == path:
            return
        if store.futures.get(name) is None:
            if store.directories.failed:
                raise KafkaStorageError("replicas cannot be moved while a log directory is offline")
            await self._has_left(name)
            await self._begin(replica, path)
        self._go_on(name)

    def _path(self, log_dir: str) -> Path:
        """Return the directory with this absolute path, which is the path that DescribeLogDirs
        shows.
        """
        store = self._store
        for path in store.directories.online:
            if str(path.absolute()) == log_dir:
                return path
        if log_dir in (str(path.absolute()) for path in store.directories.failed):
            raise KafkaStorageError(f"the log directory {log_dir} is offline")
        raise LogDirNotFound(f"{log_dir} is not in log.dirs of this broker")

    async def _has_left(self, name: TopicPartition) -> None:
        """Wait until everything that the previous move changed is on disk.

        If another move were started before that, it could be unclear after a crash which directory
        has the valid log. Raises KafkaStorageError if this takes too long.
        """
        if name in self._leaving:
            with suppress(TimeoutError):
                async with asyncio.timeout(_LEFT_WITHIN_S):
                    await shielded(self._tasks[name])
        if name in self._leaving or self._store.futures.is_leaving(name):
            raise KafkaStorageError(f"the previous move of {name} is not on disk yet; retry")

    async def _begin(self, replica: Replica, path: Path) -> None:
        name, store = replica.topic_partition, self._store
        unique = self._random.below(1 << 128).to_bytes(16)
        try:
            # A disk may have failed during the wait for the previous move.
            if not self._replicas.hosts(replica):
                raise KafkaStorageError(f"the log directory of {name} has just failed")
            new = store.moves.place(name, path, unique)
            await self._in_lane(partial(store.moves.lay_out, new))
            log = store.logs.get(name)
            # Either directory may have failed while a thread created the files.
            if log is None or path not in store.directories.online:
                raise KafkaStorageError(f"a log directory of {name} has just failed")
            store.futures.open(new, log)
        except OSError as error:
            self._failures.on_error(path, error)
            raise KafkaStorageError(str(error)) from error
        _log.info("moving %s to %s", name, path)

    def _drop(self, name: TopicPartition) -> None:
        try:
            self._store.futures.drop(name)
        except DirectoryError as error:
            self._failures.on_error(error.directory, error)

    # --- roles -----------------------------------------------------------------------------------

    def on_leading(self, replica: Replica) -> None:
        self._go_on(replica.topic_partition)

    def on_following(self, replica: Replica, leader_id: int) -> None:
        self._go_on(replica.topic_partition)

    def _go_on(self, name: TopicPartition) -> None:
        """Start a task for the partition's move, if it has one."""
        if name not in self._tasks and self._store.futures.get(name) is not None:
            self._tasks[name] = asyncio.get_running_loop().create_task(self._run(name))

    # --- a move ----------------------------------------------------------------------------------

    async def _run(self, name: TopicPartition) -> None:
        from barnabas.broker.partitions.replica_mover import ReplicaMover  # rarely needed

        try:
            # A mover also ends if the move must be restarted with a new mover.
            while not self._stopping.is_set():
                future = self._store.futures.get(name)
                if future is None or self._replicas.get(name) is None:
                    return
                async with self._turns:
                    await ReplicaMover(self._parts, name, future).run()
        finally:
            del self._tasks[name]

    async def _in_lane(self, action: Callable[[], None]) -> None:
        await run_in(self._replicas.threads.background, action)
