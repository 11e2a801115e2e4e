"""Manages all logs of a broker in its log directories.

A clean shutdown depends on the order of the steps. At startup, the store first locks every
directory and reads its metadata. Only then does it remove the clean shutdown markers and open the
logs. At shutdown, it flushes and closes every log, then writes the checkpoints, and finally writes
the marker of each directory. If a log in a directory has failed, the directory gets no marker, and
the next start scans it.

If a directory fails, at startup or later, the directory and its logs go offline, and the broker
continues with the other directories (KIP-112). If a log is damaged, only this log is skipped
(`damaged_logs`). If a directory belongs to another broker or another cluster, the broker does not
start.

A log is created in the directory that has the fewest logs at that time, and stays there.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from barnabas.config import LogConfig
from barnabas.errors import ConfigError, CorruptData, is_out_of_descriptors
from barnabas.named_tuple import NamedTuple
from barnabas.storage.damaged_logs import DamagedLog, DamagedLogs
from barnabas.storage.directory import (
    DELETED_SUFFIX,
    HIGH_WATERMARKS,
    LOG_STARTS,
    RECOVERY_POINTS,
    STRAY_SUFFIX,
    DirectoryError,
    LogDirectory,
    UnusableDirectory,
    unusable,
)
from barnabas.storage.files import Files
from barnabas.storage.future_logs import FutureLogs
from barnabas.storage.loading import PRODUCER_EXPIRATION_MS, Loading, Start
from barnabas.storage.log_directories import LogDirectories
from barnabas.storage.log_truncations import LogTruncations
from barnabas.storage.new_log import NewLog, NewTopicIds, Places
from barnabas.storage.offset_checkpoints import OffsetCheckpoints
from barnabas.storage.opening import Opening
from barnabas.storage.replica_moves import ReplicaMoves
from barnabas.types import TopicPartition

if TYPE_CHECKING:
    from barnabas.storage.log import Log

_log = logging.getLogger(__name__)


class LogSize(NamedTuple):
    """The size of a log in a log directory, as reported by DescribeLogDirs."""

    size_bytes: int
    offset_lag: int
    """The number of offsets by which a future replica lags behind the current replica."""
    is_future: bool


class LogStore:
    """The logs of a broker by partition. All methods are synchronous, and some have to wait for the
    disk, as noted."""

    __slots__ = (
        "_checkpoints",
        "_files",
        "_homes",
        "_logs",
        "_places",
        "_producer_expiration_ms",
        "_recovery_processes",
        "damaged",
        "directories",
        "futures",
        "high_watermarks",
        "moves",
        "topic_ids",
        "truncations",
    )

    def __init__(
        self,
        files: Files,
        broker_id: int,
        producer_expiration_ms: int = PRODUCER_EXPIRATION_MS,
        recovery_processes: int = 1,
    ) -> None:
        """Create a store without logs.

        Producers that have been idle for more than `producer_expiration_ms` are removed at startup.
        After a crash, up to `recovery_processes` processes recover the logs in a directory.
        """
        self._files = files
        self._producer_expiration_ms = producer_expiration_ms
        self._recovery_processes = recovery_processes
        self._logs: dict[TopicPartition, Log] = {}
        self._homes: dict[TopicPartition, LogDirectory] = {}
        self.futures = FutureLogs(files)
        """The replicas that are being moved from one directory to another."""
        self.damaged = DamagedLogs()
        self._checkpoints = OffsetCheckpoints(self._logs, self._homes, self.futures, self.damaged)
        self._places = Places(files, self._checkpoints.forget)
        self.directories = LogDirectories(files, broker_id)
        self.topic_ids = NewTopicIds(
            files, self._logs, self.futures, self.damaged, self._checkpoints
        )
        self.truncations = LogTruncations(self._logs, self._homes, self.futures, self._checkpoints)
        self.moves = ReplicaMoves(
            self._logs,
            self._homes,
            self.directories,
            self._places,
            self.futures,
            self._checkpoints,
        )
        self.high_watermarks = self._checkpoints.high_watermarks
        """The high watermarks that were last written to the checkpoints."""

    @classmethod
    def open(
        cls,
        files: Files,
        directories: Sequence[Path],
        *,
        config: LogConfig,
        broker_id: int,
        now_ms: int,
    ) -> LogStore:
        """Create a store and call `begin`."""
        store = cls(files, broker_id)
        store.begin(directories, config, now_ms)
        return store

    def begin(
        self,
        directories: Sequence[Path],
        config: LogConfig,
        now_ms: int,
        loading: Loading | None = None,
    ) -> None:
        """Lock the directories and open the logs in them. After a crash, the logs are recovered.

        All logs start with `config`, the configuration of the broker; the topics' configurations
        are set later. A directory that cannot be used is skipped with one line in the broker's log,
        provided that another directory can be used. Raises LoadingStopped, or ConfigError with a
        one-line message that explains what to do. In both cases, everything is released, and no
        directory is marked as clean.
        """
        try:
            for path in directories:
                try:
                    self._take(Path(path))
                except UnusableDirectory as error:
                    self.directories.fail(Path(path), error)
            self.directories.check_cluster()
            for directory in self.directories:
                try:
                    self._open_logs(directory, config, now_ms, loading)
                except (OSError, CorruptData) as cause:
                    if isinstance(cause, OSError) and is_out_of_descriptors(cause):
                        # The process has run out of descriptors. If a healthy directory were
                        # skipped, replicas would be lost.
                        raise unusable(directory.path, cause) from cause  # the disk is not at fault
                    self.fail_directory(directory.path, unusable(directory.path, cause))
            try:
                self.futures.on_all_open(self._logs, is_complete=self._is_complete())
            except DirectoryError as cause:
                self.fail_directory(cause.directory, unusable(cause.directory, cause))
            # As in Kafka, a broker does not start if it has no log directory that can be used
            # (KIP-112).
            if not self.directories:
                raise self.directories.reasons[0]
        except BaseException:
            self.release()
            raise
        for reason in self.directories.reasons:
            _log.error("%s; the broker starts without it", reason)

    def _take(self, path: Path) -> None:
        directory = self.directories.open(path)
        try:
            found = directory.partitions()
            self.futures.take(directory)
        except OSError as cause:
            directory.release()
            raise unusable(path, cause) from cause
        except ConfigError:
            directory.release()
            raise
        self.directories.add(directory)
        for topic_partition in found:
            other = self._homes.setdefault(topic_partition, directory)
            self._places.hosted[directory] += 1
            if other is not directory:
                # If a crash occurred between the two renames of a move, the new replica is the
                # valid one.
                older, newer = self.futures.found_twice(topic_partition, other, directory)
                self._places.hosted[older] -= 1
                self._homes[topic_partition] = newer

    def _open_logs(
        self, directory: LogDirectory, config: LogConfig, now_ms: int, loading: Loading | None
    ) -> None:
        start = Start(
            is_clean=directory.was_clean,
            now_ms=now_ms,
            producer_expiration_ms=self._producer_expiration_ms,
            loading=loading,
        )
        opening = Opening(self._files, directory, config, start, self._recovery_processes)
        # Mark the directory as unclean before any log is opened, so that the next start can detect
        # a crash.
        directory.begin()
        self.futures.leave_all(directory)
        directory.purge()
        is_cut = is_back = False
        names = self._checkpoints.names_in(directory)
        if loading is not None:
            loading.begin(directory.path, len(names), is_clean=directory.was_clean)
        for found in opening.logs(names):
            if isinstance(found.log, DamagedLog):
                self.damaged.add(found.name, found.log)
                self._places.hosted[self._homes.pop(found.name)] -= 1
                continue
            self._logs[found.name] = found.log
            self.high_watermarks[found.name] = found.high_watermark
            is_back = is_back or found.is_back
            is_cut = is_cut or found.is_cut
        is_complete = self._is_complete()
        self.futures.open_in(directory, self._homes, config, opening.start_of, is_complete)
        if loading is not None:
            loading.end()
        noted = opening.topic_ids
        directory.topic_ids.begin({name: noted[name] for name in names if name in noted})
        if is_back:
            # The broker died during a truncation. Records that are written from now on are not
            # durable yet.
            self._checkpoints.write_in(directory, RECOVERY_POINTS)
        if is_cut:
            # Otherwise, records that are written from now on would count as committed after the
            # next crash.
            self._checkpoints.write_in(directory, HIGH_WATERMARKS)

    def _is_complete(self) -> bool:
        """Return whether the store knows all logs of the broker."""
        return not (self.directories.failed or self.damaged)

    # --- queries ---------------------------------------------------------------------------------

    @property
    def logs(self) -> Mapping[TopicPartition, Log]:
        return MappingProxyType(self._logs)

    def directory_of(self, topic_partition: TopicPartition) -> Path:
        """Return the directory that contains the log."""
        return self._homes[topic_partition].path

    def sizes(self, path: Path) -> dict[TopicPartition, LogSize]:
        """Return the sizes of all logs in a log directory. This includes future replicas."""
        found = {}
        for name, log in self._logs.items():
            future, target = self.futures.get(name), self.futures.home(name)
            if self._homes[name].path == path:
                found[name] = LogSize(log.size_bytes, 0, is_future=False)
            elif future is not None and target is not None and target.path == path:
                lag = log.log_end_offset - future.log_end_offset
                found[name] = LogSize(future.size_bytes, lag, is_future=True)
        return found

    def unknown_to(self, names: Iterable[TopicPartition]) -> list[TopicPartition]:
        """Return the logs that are not part of any partition in the cluster. They are reported but
        kept.
        """
        unknown = sorted(self._logs.keys() - set(names))
        for name in unknown:
            _log.warning(
                "%s is a partition that is not in the metadata; ignoring it. Move it elsewhere "
                "if it is not needed, or import the metadata that it belongs to",
                self._logs[name].directory,
            )
        return unknown

    def begins_whole(self, boot_id: bytes) -> bool:
        """Return whether the logs contain everything that was ever written to them; see
        `directories`.
        """
        return self.directories.begins_whole(boot_id, has_damaged=bool(self.damaged))

    # --- change ----------------------------------------------------------------------------------

    def create(
        self,
        topic_partition: TopicPartition,
        topic_id: bytes,
        config: LogConfig,
        *,
        is_new: bool = False,
    ) -> Log:
        """Create an empty log.

        Raises OSError if no directory is online. Unless the partition `is_new`, its log may exist
        in an offline directory. In that case, this also raises OSError, because otherwise the log
        might be created twice. Raises DirectoryError if the disk fails.
        """
        log = self.make(topic_partition, topic_id, config, is_new=is_new)
        self.topic_ids.write()
        return log

    def make(
        self,
        topic_partition: TopicPartition,
        topic_id: bytes,
        config: LogConfig,
        *,
        is_new: bool = False,
    ) -> Log:
        """Create a log in the same way as `create`.

        Nothing may be written to the log until `topic_ids.write` has returned.
        """
        assert topic_partition not in self._logs, f"{topic_partition} already exists"
        from barnabas.storage.recovery import open_log  # imported with the first log

        new = self.place(topic_partition, topic_id, is_new=is_new)
        directory = new.directory
        start = Start(is_clean=True)
        try:
            # If a thread has already created the files, this does nothing.
            new.lay_out()
            log = open_log(self._files, new.path, topic_partition, config, start)
        except OSError as cause:
            raise DirectoryError(directory.path, cause) from cause
        self._places.forget(topic_partition)
        self._logs[topic_partition] = log
        self._homes[topic_partition] = directory
        self.topic_ids.add(topic_partition, directory, topic_id)
        return log

    def place(
        self, topic_partition: TopicPartition, topic_id: bytes, *, is_new: bool = False
    ) -> NewLog:
        """Choose the directory in which `make` will create a log.

        Any thread may call `lay_out` on the result before `make` is called.

        Raises OSError in the same cases as `make`, or InvalidTopic if no directory can have this
        name.
        """
        self.directories.check_complete(topic_partition, is_new=is_new)
        self.damaged.check(topic_partition)
        return self._places.place(topic_partition, topic_id, tuple(self.directories))

    def delete(self, *names: TopicPartition) -> None:
        """Delete logs durably.

        The names of the logs can be used again immediately. The files are removed by the next call
        of `LogDirectories.purge_deleted`. If this raises DirectoryError, a power failure may bring
        back any of the logs.
        """
        for path in dict.fromkeys([self.set_aside(name) for name in names]):
            self.directories.sync_names(path)

    def set_aside(self, topic_partition: TopicPartition, *, is_stray: bool = False) -> Path:
        """Drop a log and rename its directory. Returns the log directory that contained it.

        A power failure may bring the log back until `LogDirectories.sync_names` has returned. If
        `is_stray` is set, the log's files are kept.
        """
        if topic_partition in self.damaged:
            return self.damaged.set_aside(topic_partition, is_stray=is_stray)
        log = self._logs.pop(topic_partition)
        directory = self._homes.pop(topic_partition)
        self._places.hosted[directory] -= 1
        self.high_watermarks.pop(topic_partition, None)
        # Another log may soon have the same name, so tasks that still use this log must get
        # LogAbandoned.
        log.abandon()
        suffix = STRAY_SUFFIX if is_stray else DELETED_SUFFIX
        try:
            directory.set_aside(topic_partition, log.topic_id or bytes(16), suffix)
        except OSError as cause:
            raise DirectoryError(directory.path, cause) from cause
        finally:
            self.futures.delete(topic_partition)
        return directory.path

    def fail_directory(self, path: Path, error: Exception) -> list[TopicPartition]:
        """Drop the logs in a directory that cannot be reached, without changing them. Returns their
        names.

        Nothing more is written to the directory. The next start that can use the directory scans
        it.
        """
        directory = self.directories.find(path)
        if directory is None:
            return []
        names = self._checkpoints.names_in(directory)
        self.damaged.on_directory_failed(directory)
        self.futures.on_directory_failed(directory, names)
        for name in names:
            del self._homes[name]
            self.high_watermarks.pop(name, None)
            log = self._logs.pop(name, None)
            if log is not None:
                log.abandon()
        self.directories.fail(path, error)
        return names

    # --- checkpoints -----------------------------------------------------------------------------

    def checkpoint_high_watermarks(self, high_watermarks: Mapping[TopicPartition, int]) -> None:
        """Write these high watermarks and the last known ones of all other logs. This waits for the
        disk.
        """
        self.high_watermarks.update(high_watermarks)
        self._checkpoints.write(HIGH_WATERMARKS, self.directories)

    def checkpoint_recovery_points(self) -> None:
        """Write the recovery point and the log start of every log. This waits for the disk."""
        self._checkpoints.write(RECOVERY_POINTS, self.directories)
        self._checkpoints.write(LOG_STARTS, self.directories)

    def close(self) -> None:
        """Shut down cleanly. The high watermarks must already be in the checkpoints.

        Closes every log that can be closed, and marks directories as clean where possible. If there
        are errors, the first one is raised at the end. It is an OSError or, if an index is damaged,
        CorruptData.
        """
        failures: list[OSError | CorruptData] = []
        for directory in self.directories:
            before = len(failures)
            current = [self._logs[name] for name in self._checkpoints.names_in(directory)]
            for log in (*current, *self.futures.logs_in(directory)):
                try:
                    log.close()
                except (OSError, CorruptData) as error:
                    failures.append(error)
            # If a log could not be closed, do not mark the directory as clean, so that the next
            # start scans it.
            if len(failures) == before:
                try:
                    self._checkpoints.write_in(directory, RECOVERY_POINTS, LOG_STARTS)
                    if not (self.directories.is_suspect or self.damaged.are_in(directory)):
                        directory.mark_clean()
                except OSError as error:
                    failures.append(error)
        self.release()
        if failures:
            raise failures[0]

    def release(self) -> None:
        """Release all descriptors and locks without writing anything, as if the process had been
        killed.
        """
        for log in (*self._logs.values(), *self.futures.logs.values()):
            log.release()
        self.directories.release()
