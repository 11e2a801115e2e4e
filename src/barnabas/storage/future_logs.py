"""Manages future replicas, which are replicas that are being moved to another log directory
(KIP-113).

    <target>/<topic>-<partition>.<32 hex>-future/    the future replica, which gets the batches
    <target>/.barnabas_moves                         lists the partition during the whole move
    <source>/<topic>-<partition>/                    the current replica, which is served

When the future replica contains every batch, it is renamed to the plain name and replaces the
current replica. When that rename is durable, the current replica is renamed to a name that ends in
`-delete`. Between the two renames, and also if the broker crashes between them, both directories
contain a replica with the plain name. The valid replica is in the directory whose `.barnabas_moves`
file lists the partition. Without these rules, a crash could lose the replica or leave two of them.

If a future replica is found at startup, the move is continued. A future replica is only a copy, so
it can be deleted if it is damaged or the move is abandoned.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from barnabas.config import LogConfig
from barnabas.errors import ConfigError, CorruptData
from barnabas.named_tuple import NamedTuple
from barnabas.storage.checkpoint import encode_entries, read_entries, replace_file
from barnabas.storage.directory import (
    DELETED_SUFFIX,
    STRAY_SUFFIX,
    DirectoryError,
    LogDirectory,
)
from barnabas.storage.files import Files
from barnabas.storage.loading import Start
from barnabas.topic_name import check_directory_name
from barnabas.types import TopicPartition

if TYPE_CHECKING:
    from barnabas.storage.log import Log

_log = logging.getLogger(__name__)

MOVES = ".barnabas_moves"

_NO_ID = bytes(16)

Lower = Callable[[LogDirectory, tuple[TopicPartition, ...]], None]
"""A function that lowers every checkpoint that is above the end of a truncated log."""


class NewFuture(NamedTuple):
    """Describes a future replica that is to be created."""

    name: TopicPartition
    directory: LogDirectory
    path: Path
    topic_id: bytes | None
    begin_offset: int


class _Leaving(NamedTuple):
    """A replica that has been replaced by its future replica but still has the plain name."""

    source: LogDirectory
    target: LogDirectory
    topic_id: bytes


class FutureLogs:
    """Manages the future replicas of a broker. A partition has at most one of them."""

    __slots__ = ("_files", "_found", "_homes", "_leaving", "_logs", "_moves", "_noting")

    def __init__(self, files: Files) -> None:
        self._files = files
        self._logs: dict[TopicPartition, Log] = {}
        self._homes: dict[TopicPartition, LogDirectory] = {}
        self._found: dict[LogDirectory, list[tuple[TopicPartition, Path]]] = {}
        # partitions being moved, as stored in the files
        self._moves: dict[LogDirectory, set[TopicPartition]] = {}
        self._noting = threading.Lock()
        self._leaving: dict[TopicPartition, _Leaving] = {}

    @property
    def logs(self) -> Mapping[TopicPartition, Log]:
        return MappingProxyType(self._logs)

    def get(self, name: TopicPartition) -> Log | None:
        return self._logs.get(name)

    def home(self, name: TopicPartition) -> LogDirectory | None:
        """Return the directory to which the partition is being moved, or None if it is not being
        moved.
        """
        return self._homes.get(name)

    def logs_in(self, directory: LogDirectory) -> list[Log]:
        """Return the future replicas in a log directory."""
        return [self._logs[name] for name in self.names_in(directory)]

    def names_in(self, directory: LogDirectory) -> list[TopicPartition]:
        return [name for name, home in list(self._homes.items()) if home is directory]

    # --- at the start ----------------------------------------------------------------------------

    def take(self, directory: LogDirectory) -> None:
        """Read which partitions were being moved to this directory when the broker stopped.

        Raises ConfigError or OSError.
        """
        self._found[directory] = directory.futures()
        names = set()
        try:
            for topic, partition in read_entries(self._files, directory.path / MOVES):
                names.add(TopicPartition(topic, int(partition)))
        except (CorruptData, ValueError) as cause:
            raise ConfigError(
                f"{directory.path / MOVES} is damaged ({cause}); remove it; if a partition is "
                "then in two directories, move the one with fewer records elsewhere"
            ) from cause
        self._moves[directory] = names

    def found_twice(
        self, name: TopicPartition, one: LogDirectory, other: LogDirectory
    ) -> tuple[LogDirectory, LogDirectory]:
        """Return the two directories in the order in which the replica was moved: its old one, then
        its new one.

        The move was interrupted by a crash, and `leave_all` completes it. Raises ConfigError if the
        partition was not being moved.
        """
        # Only the new directory of a move lists the partition. If neither directory lists it, it is
        # unclear which of the two replicas is complete.
        there = [each for each in (one, other) if name in self._moves[each]]
        if len(there) != 1:
            raise ConfigError(
                f"{name} is in both {one.path} and {other.path}; move the one with fewer records "
                "elsewhere"
            )
        older = other if there[0] is one else one
        self._leaving[name] = _Leaving(older, there[0], _NO_ID)
        return older, there[0]

    def leave_all(self, source: LogDirectory) -> None:
        """Call `leave` for every replaced replica in this directory, and make the renames durable.

        Raises DirectoryError.
        """
        names = [name for name, each in self._leaving.items() if each.source is source]
        for name in names:
            self.leave(name)
        if names:
            source.sync()

    def open_in(
        self,
        directory: LogDirectory,
        current: Mapping[TopicPartition, LogDirectory],
        config: LogConfig,
        start_of: Callable[[TopicPartition], Start],
        is_complete: bool,
    ) -> None:
        """Open the future replicas in a log directory. Raises OSError.

        `current` maps each partition to the directory of its current replica. Unless `is_complete`
        is set, a replica that is missing from the mapping may be in an offline directory.
        """
        for name, path in self._found.pop(directory, []):
            home = current.get(name)
            # A second future replica is not needed, nor is one in the same directory as the current
            # replica.
            if name in self._homes or home is directory:
                self._set_aside(directory, name, path, DELETED_SUFFIX, _NO_ID)
            elif home is not None:
                self._open_found(name, directory, path, config, start_of(name))
            elif is_complete:
                _log.warning(
                    "%s was going to replace a replica that no longer exists; renaming it with the "
                    "suffix -stray, so that it is never opened. Remove it if it is not needed",
                    path,
                )
                self._set_aside(directory, name, path, STRAY_SUFFIX, _NO_ID)

    def _open_found(
        self,
        name: TopicPartition,
        directory: LogDirectory,
        path: Path,
        config: LogConfig,
        start: Start,
    ) -> None:
        from barnabas.storage.recovery import open_log  # imported with the first log

        try:
            # Without the future replica, only the move has to start again, because the current
            # replica is complete.
            log = open_log(self._files, path, name, config, start)
        except CorruptData as error:
            _log.warning("%s is damaged; cancelling the move: %s", path, error)
            self._set_aside(directory, name, path, DELETED_SUFFIX, _NO_ID)
            return
        log.first_dirty_offset = 0  # its first dirty offset is unknown, so clean the whole log
        self._logs[name], self._homes[name] = log, directory

    def on_all_open(self, logs: Mapping[TopicPartition, Log], *, is_complete: bool) -> None:
        """Delete the future replicas without a current replica. Call this when all directories are
        open.

        Raises DirectoryError.
        """
        for name, future in list(self._logs.items()):
            log = logs.get(name)
            # The current replica could not be opened, so leave this copy unchanged.
            if log is None:
                self._forget(name)
            elif None not in (log.topic_id, future.topic_id) and log.topic_id != future.topic_id:
                self.drop(name)
        if is_complete:
            for directory, names in list(self._moves.items()):
                self._note(directory, names & set(self.names_in(directory)))

    # --- a move ----------------------------------------------------------------------------------

    def place(self, log: Log, directory: LogDirectory, unique: bytes) -> NewFuture:
        """Choose the path for the future replica of a log. After that, `lay_out` may run in any
        thread.

        Raises InvalidTopic if no directory can have this name.
        """
        name = log.topic_partition
        check_directory_name(name)
        path = directory.future_path(name, unique)
        return NewFuture(name, directory, path, log.topic_id, log.log_start_offset)

    def lay_out(self, new: NewFuture) -> None:
        """Record the move durably and create the files of the future replica. Raises OSError."""
        for directory, names in list(self._moves.items()):
            # Only one directory may list the partition. Otherwise, a crash would leave two replicas
            # that look valid.
            if new.name in names and directory is not new.directory:
                self._note(directory, names - {new.name})
        self._note(new.directory, self._moves[new.directory] | {new.name})
        # Import this with the first log.
        from barnabas.storage.gaps import begin_without_gaps
        from barnabas.storage.partition_metadata import write_topic_id
        from barnabas.storage.segment import Segment

        files, path = self._files, new.path
        files.make_directory(path)
        begin_without_gaps(files, path)
        if new.topic_id is not None:
            write_topic_id(files, path, new.topic_id)
        Segment.create(files, path, new.begin_offset)

    def open(self, new: NewFuture, log: Log) -> None:
        """Start moving a log to the files that `lay_out` has created. Raises OSError."""
        from barnabas.storage.recovery import open_log  # imported with the first log

        start = Start(is_clean=True, log_start_offset=new.begin_offset)
        future = open_log(self._files, new.path, new.name, log.config, start)
        future.first_dirty_offset = max(log.first_dirty_offset, 0)  # the checkpoint is not read
        self._logs[new.name], self._homes[new.name] = future, new.directory

    def cut(self, name: TopicPartition, offset: int, lower: Lower, *, is_all: bool = False) -> None:
        """Truncate the future replica after the current replica was truncated to `offset`, or
        emptied and restarted there if `is_all` is set.
        """
        future = self._logs.get(name)
        if future is None or (future.log_end_offset <= offset and not is_all):
            return
        with suppress(OSError):  # the log has failed, which the move will detect
            if is_all:
                future.start_at(offset, settles=False)
            else:
                future.truncate(offset, settles=False)
            if future.unsettled is not None:
                future.unsettled.before_writes = partial(lower, self._homes[name], (name,))

    def promote(self, name: TopicPartition, current: Log, source: LogDirectory) -> LogDirectory:
        """Give the plain name to the future replica, which must contain every batch of the current
        one.

        When the new name is durable, call `leave`. If this raises DirectoryError, the current
        replica is still in use.
        """
        future, target = self._logs[name], self._homes[name]
        path = target.path_of(name)
        try:
            # The batches do not show leader epochs without records, nor do they show all producers.
            future.take_over(current)
            self._files.replace(future.directory, path)
        except OSError as cause:
            raise DirectoryError(target.path, cause) from cause
        future.on_renamed(path)
        self._forget(name, releases=False)
        self._leaving[name] = _Leaving(source, target, current.topic_id or _NO_ID)
        return target

    def leave(self, name: TopicPartition) -> None:
        """Rename the replaced replica if it still has the plain name. Raises DirectoryError."""
        leaving = self._leaving.pop(name, None)
        if leaving is not None:
            path = leaving.source.path_of(name)
            self._set_aside(leaving.source, name, path, DELETED_SUFFIX, leaving.topic_id)

    def is_leaving(self, name: TopicPartition) -> bool:
        """Return whether a replica of this partition was replaced but still has the plain name."""
        return name in self._leaving

    def on_completed(self, name: TopicPartition, target: LogDirectory) -> None:
        """Record that the rename of the replaced replica is durable. This may run in a thread.

        Raises DirectoryError.
        """
        self._note(target, self._moves.get(target, set()) - {name})

    def drop(self, name: TopicPartition) -> None:
        """Abandon the partition's move, if there is one, and delete the future replica. Raises
        DirectoryError.
        """
        future, home = self._logs.get(name), self._homes.get(name)
        if future is not None and home is not None:
            self._forget(name)
            topic_id = future.topic_id or _NO_ID
            self._set_aside(home, name, future.directory, DELETED_SUFFIX, topic_id)

    def delete(self, name: TopicPartition) -> None:
        """Delete the future replica and the replaced replica after the current replica was deleted.

        Raises DirectoryError.
        """
        try:
            self.drop(name)
        finally:
            self.leave(name)

    def on_directory_failed(self, failed: LogDirectory, names: Iterable[TopicPartition]) -> None:
        """Handle the failure of a directory that contained these current replicas.

        Replicas that are moved from or to this directory are left unchanged until the broker is
        started after the repair.
        """
        for name in [*names, *self.names_in(failed)]:
            self._forget(name)
        self._moves.pop(failed, None)
        self._leaving = {
            name: each
            for name, each in self._leaving.items()
            if failed not in (each.source, each.target)
        }

    def _forget(self, name: TopicPartition, *, releases: bool = True) -> None:
        future = self._logs.pop(name, None)
        self._homes.pop(name, None)
        if future is not None and releases:
            future.abandon()

    def _set_aside(
        self,
        directory: LogDirectory,
        name: TopicPartition,
        path: Path,
        suffix: str,
        unique: bytes,
    ) -> None:
        try:
            directory.set_aside(name, unique, suffix, path)
        except OSError as cause:
            raise DirectoryError(directory.path, cause) from cause

    def _note(self, directory: LogDirectory, names: set[TopicPartition]) -> None:
        """Write these names to the directory's file, or remove the file if there are no names.

        Raises DirectoryError.
        """
        path = directory.path / MOVES
        with self._noting:
            # Replace the file only if the names have changed.
            if names == self._moves.get(directory, set()):
                return  # there is nothing to write
            try:
                if names:
                    entries = ((name.topic, name.partition) for name in sorted(names))
                    replace_file(self._files, path, encode_entries(entries))
                else:
                    self._files.remove(path)
                    self._files.sync(path.parent)
            except OSError as cause:
                raise DirectoryError(path.parent, cause) from cause
            self._moves[directory] = names
