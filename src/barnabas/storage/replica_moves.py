"""Moves replicas of a store between its log directories (KIP-113).

`future_logs` manages the files, and changes them in an order that survives a crash. This module
replaces the current replica with the future replica and updates the checkpoints of both
directories.
"""

from __future__ import annotations

from collections.abc import MutableMapping
from pathlib import Path
from typing import TYPE_CHECKING

from barnabas.storage.directory import DirectoryError, LogDirectory
from barnabas.storage.future_logs import FutureLogs, NewFuture
from barnabas.storage.log_directories import LogDirectories
from barnabas.storage.new_log import Places
from barnabas.storage.offset_checkpoints import ALL, OffsetCheckpoints
from barnabas.types import TopicPartition

if TYPE_CHECKING:
    from barnabas.storage.log import Log


class ReplicaMoves:
    """Moves the logs of a store. Only one move can be in progress for each partition."""

    __slots__ = ("_checkpoints", "_directories", "_futures", "_homes", "_logs", "_places")

    def __init__(
        self,
        logs: MutableMapping[TopicPartition, Log],
        homes: MutableMapping[TopicPartition, LogDirectory],
        directories: LogDirectories,
        places: Places,
        futures: FutureLogs,
        checkpoints: OffsetCheckpoints,
    ) -> None:
        self._logs = logs
        self._homes = homes
        self._directories = directories
        self._places = places
        self._futures = futures
        self._checkpoints = checkpoints

    def prefer(self, name: TopicPartition, path: Path) -> None:
        """Choose this directory for a log that will be created later.

        Raises OSError if the directory is offline.
        """
        self._places.prefer(name, self._directories.get(path))

    def place(self, name: TopicPartition, path: Path, unique: bytes) -> NewFuture:
        """Choose the path for the future replica. Raises OSError if the directory is offline."""
        return self._futures.place(self._logs[name], self._directories.get(path), unique)

    def lay_out(self, new: NewFuture) -> None:
        """Create the future replica's files. This may run in a thread. Raises DirectoryError."""
        try:
            # After a crash, the replica must not get the offsets of an earlier log with the same
            # name in this directory. The same holds for new logs.
            self._checkpoints.forget(new.directory, new.name)
            self._futures.lay_out(new)
        except OSError as cause:
            raise DirectoryError(new.directory.path, cause) from cause

    def cut(self, name: TopicPartition, offset: int) -> None:
        """Truncate the future replica, if there is one, at the offset where it diverged from the
        current one.
        """
        self._futures.cut(name, offset, self._checkpoints.lower)

    def promote(self, name: TopicPartition) -> Log:
        """Replace a log with its future replica, which must be complete, and return that replica.

        When the new name is durable, call `FutureLogs.leave` and then `complete`. If this raises
        DirectoryError, the current replica is still in use.
        """
        current, source, future = self._logs[name], self._homes[name], self._futures.logs[name]
        target = self._futures.promote(name, current, source)
        self._logs[name], self._homes[name] = future, target
        self._places.hosted[source] -= 1
        self._places.hosted[target] += 1
        current.abandon()
        return future

    def complete(self, name: TopicPartition, source: Path) -> None:
        """Make the end of a move durable. This may run in a thread.

        Raises DirectoryError, or OSError if a directory is offline.
        """
        left, home = self._directories.get(source), self._homes.get(name)
        # First sync the rename of the replaced replica. As long as `.barnabas_moves` lists the
        # partition, a start can tell which of the two directories is valid.
        left.sync()
        self._checkpoints.write_in(left, *ALL)
        if home is not None:  # it has not been deleted
            self._checkpoints.write_in(home, *ALL)
            self._futures.on_completed(name, home)

    def checkpoint(self, path: Path) -> None:
        """Write all checkpoints of a directory. This may run in a thread. Raises DirectoryError."""
        self._checkpoints.write_in(self._directories.get(path), *ALL)
