"""Implements the store's part of moving replicas between log directories (KIP-113).

`future_logs` manages the files, in an order that survives a crash. This module replaces the current
replica with the future one, and updates both directories' checkpoints.
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
    """Moves the logs of a store. A partition has at most one move in progress."""

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
        """Create the log, when it is needed, in this directory.

        Raises OSError if that is offline.
        """
        self._places.prefer(name, self._directories.get(path))

    def place(self, name: TopicPartition, path: Path, unique: bytes) -> NewFuture:
        """Choose the path of the future replica. Raises OSError if the directory is offline."""
        return self._futures.place(self._logs[name], self._directories.get(path), unique)

    def lay_out(self, new: NewFuture) -> None:
        """Create the future replica's files. Can run in a thread. Raises DirectoryError."""
        try:
            # As with a new log, a crash must not leave it with the offsets of an earlier namesake
            # in the directory.
            self._checkpoints.forget(new.directory, new.name)
            self._futures.lay_out(new)
        except OSError as cause:
            raise DirectoryError(new.directory.path, cause) from cause

    def cut(self, name: TopicPartition, offset: int) -> None:
        """Truncate any future replica where it diverged from the current one."""
        self._futures.cut(name, offset, self._checkpoints.lower)

    def promote(self, name: TopicPartition) -> Log:
        """Replace a log with its complete future replica, and return the replica.

        Once its new name is durable, call `FutureLogs.leave`, then `complete`. After a
        DirectoryError, nothing has been replaced.
        """
        current, source, future = self._logs[name], self._homes[name], self._futures.logs[name]
        target = self._futures.promote(name, current, source)
        self._logs[name], self._homes[name] = future, target
        self._places.hosted[source] -= 1
        self._places.hosted[target] += 1
        current.abandon()
        return future

    def complete(self, name: TopicPartition, source: Path) -> None:
        """Make the end of a move durable. Can run in a thread.

        Raises DirectoryError, or OSError if a directory is offline.
        """
        left, home = self._directories.get(source), self._homes.get(name)
        # First sync the rename of the replaced replica. While `.barnabas_moves` contains the
        # partition, a start can tell which of two directories is valid.
        left.sync()
        self._checkpoints.write_in(left, *ALL)
        if home is not None:  # it has not been deleted
            self._checkpoints.write_in(home, *ALL)
            self._futures.on_completed(name, home)

    def checkpoint(self, path: Path) -> None:
        """Write all checkpoints of one directory. Can run in a thread. Raises DirectoryError."""
        self._checkpoints.write_in(self._directories.get(path), *ALL)
