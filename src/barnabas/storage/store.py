"""All logs of a broker, in its log directories.

Owns the order of a start and of a stop, which makes a stop clean. Start: lock every directory and
read its metadata, and only then remove the markers and open the logs. Stop: flush and close every
log, write the checkpoints, and last the marker, per directory; a directory with a failed log gets
none, and is scanned at the next start.

A directory that is broken, at the start or later, goes offline alone: its logs are dropped here,
and the broker runs on the others (KIP-112). A log that is damaged is left out alone (`damaged`).
With a directory of another broker or cluster the broker does not start.

A log stays in the directory in which it was created: the one that then had the fewest.
"""

from __future__ import annotations

import errno
import logging
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType

from barnabas.config import LogConfig
from barnabas.errors import ConfigError, CorruptData, is_out_of_descriptors
from barnabas.storage.damaged import DamagedLog, DamagedLogs
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
from barnabas.storage.files import Files, Space
from barnabas.storage.future_logs import FutureLogs, NewFuture
from barnabas.storage.loading import Loading
from barnabas.storage.log import Log
from barnabas.storage.log_size import LogSize
from barnabas.storage.new_log import NewLog, Places
from barnabas.storage.offset_checkpoints import ALL, OffsetCheckpoints
from barnabas.storage.opening import Opening
from barnabas.storage.partition_metadata import write_topic_id
from barnabas.storage.recovery import PRODUCER_EXPIRATION_MS, Start, open_log
from barnabas.storage.strays import strays
from barnabas.storage.truncation import Cut
from barnabas.types import TopicPartition

_log = logging.getLogger(__name__)


class LogStore:
    """The logs by partition. All methods are synchronous; those that wait for a disk say so."""

    __slots__ = (
        "_broker_id",
        "_checkpoints",
        "_directories",
        "_failed",
        "_files",
        "_homes",
        "_is_suspect",
        "_logs",
        "_made",
        "_noting",
        "_places",
        "_producer_expiration_ms",
        "_recovery_processes",
        "damaged",
        "futures",
        "high_watermarks",
    )

    def __init__(
        self,
        files: Files,
        broker_id: int,
        producer_expiration_ms: int = PRODUCER_EXPIRATION_MS,
        recovery_processes: int = 1,
    ) -> None:
        """`producer_expiration_ms`: producers idle for longer are removed at the start.
        `recovery_processes`: how many recover the logs of a directory after a crash."""
        self._files = files
        self._broker_id = broker_id
        self._producer_expiration_ms = producer_expiration_ms
        self._recovery_processes = recovery_processes
        self._directories: tuple[LogDirectory, ...] = ()
        self._is_suspect = False
        self._failed: dict[Path, Exception] = {}
        self._logs: dict[TopicPartition, Log] = {}
        self._made: dict[LogDirectory, dict[TopicPartition, bytes]] = {}  # and not noted yet
        self._noting = threading.Lock()
        self._homes: dict[TopicPartition, LogDirectory] = {}
        self.futures = FutureLogs(files)
        """What moves from one directory to another."""
        self.damaged = DamagedLogs()
        self._checkpoints = OffsetCheckpoints(self._logs, self._homes, self.futures, self.damaged)
        self._places = Places(files, self._checkpoints.forget)
        self.high_watermarks = self._checkpoints.high_watermarks
        """As last checkpointed."""

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
        """Create a store and `begin` it."""
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
        """Take the directories and open their logs, with recovery after a crash.

        The logs get the broker's own `config`; the topics' are set later. A broken directory is
        left out with one line in the log, if another is usable. Raises ConfigError with one line
        on what to do, or LoadingStopped; everything is released then, and no directory is left
        clean.
        """
        try:
            for path in directories:
                try:
                    self._take(Path(path))
                except UnusableDirectory as error:
                    self._failed[Path(path)] = error
            clusters = {d.cluster_id for d in self._directories if d.cluster_id is not None}
            if len(clusters) > 1:
                raise ConfigError(
                    f"the log directories belong to different clusters, {', '.join(clusters)}"
                )
            for directory in self._directories:
                try:
                    self._open_logs(directory, config, now_ms, loading)
                except (OSError, CorruptData) as cause:
                    if isinstance(cause, OSError) and is_out_of_descriptors(cause):
                        raise unusable(directory.path, cause) from cause  # it is no disk's fault
                    self.fail_directory(directory.path, unusable(directory.path, cause))
            try:
                is_complete = not (self._failed or self.damaged)
                self.futures.began(self._logs, is_complete=is_complete)
            except DirectoryError as cause:
                self.fail_directory(cause.directory, unusable(cause.directory, cause))
            if not self._directories:
                raise next(iter(self._failed.values()))
        except BaseException:
            self.release()
            raise
        for reason in self._failed.values():
            _log.error("%s; the broker runs without it", reason)

    def _take(self, path: Path) -> None:
        if path in (*(directory.path for directory in self._directories), *self._failed):
            raise ConfigError(f"log directory {path} is listed twice in log.dirs")
        directory = LogDirectory(self._files, path, self._broker_id)
        try:
            found = directory.partitions()
            self.futures.take(directory)
        except OSError as cause:
            directory.release()
            raise unusable(path, cause) from cause
        except ConfigError:
            directory.release()
            raise
        self._directories += (directory,)
        for topic_partition in found:
            other = self._homes.setdefault(topic_partition, directory)
            self._places.hosted[directory] += 1
            if other is not directory:
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
        is_complete = not (self._failed or self.damaged)
        self.futures.open_in(directory, self._homes, config, opening.start_of, is_complete)
        if loading is not None:
            loading.end()
        noted = opening.topic_ids
        directory.topic_ids.begin({name: noted[name] for name in names if name in noted})
        if is_back:
            # It died in a truncation, and records written from now on are not durable yet.
            self._checkpoints.write_in(directory, RECOVERY_POINTS)
        if is_cut:
            # Now, or after the next crash records written since would count as committed.
            self._checkpoints.write_in(directory, HIGH_WATERMARKS)

    # --- queries ---------------------------------------------------------------------------

    @property
    def logs(self) -> Mapping[TopicPartition, Log]:
        return MappingProxyType(self._logs)

    @property
    def online_directories(self) -> tuple[Path, ...]:
        return tuple(directory.path for directory in self._directories)

    @property
    def failed_directories(self) -> tuple[Path, ...]:
        """The directories that are offline until the next start."""
        return tuple(self._failed)

    def directory_of(self, topic_partition: TopicPartition) -> Path:
        """The log directory of a log."""
        return self._homes[topic_partition].path

    def sizes(self, path: Path) -> dict[TopicPartition, LogSize]:
        """The logs in a log directory, future replicas included."""
        found = {}
        for name, log in self._logs.items():
            future, target = self.futures.get(name), self.futures.home(name)
            if self._homes[name].path == path:
                found[name] = LogSize(log.size_bytes, 0, is_future=False)
            elif future is not None and target is not None and target.path == path:
                lag = log.log_end_offset - future.log_end_offset
                found[name] = LogSize(future.size_bytes, lag, is_future=True)
        return found

    def volume(self, path: Path, *, with_strays: bool = True) -> tuple[Space, dict[str, int]]:
        """The space of a log directory's volume, and the sizes of strays in it. OSError."""
        return self._files.space(path), strays(self._files, path) if with_strays else {}

    def unknown_to(self, names: Iterable[TopicPartition]) -> list[TopicPartition]:
        """The logs that are not among the cluster's partitions: logged, and left alone."""
        unknown = sorted(self._logs.keys() - set(names))
        for name in unknown:
            _log.warning(
                "%s has a partition that is not in the metadata; it is left alone. Move it "
                "elsewhere if it is not needed, or import the metadata that it belongs to",
                self._logs[name].directory,
            )
        return unknown

    def begins_whole(self, boot_id: bytes) -> bool:
        """Whether the logs have all that was ever written to them (`LogDirectory.may_have_lost`).

        If not, no stop is clean until `loss_is_known` has been called: the next start must not
        lose the fact before the cluster knows it.
        """
        self._is_suspect = bool(self._failed or self.damaged) or any(
            directory.may_have_lost(boot_id) for directory in self._directories
        )
        return not self._is_suspect

    def loss_is_known(self, boot_id: bytes) -> None:
        """The cluster knows of the possible loss; from now on the logs count as complete."""
        self._is_suspect = False
        for directory in self._directories:
            directory.note_boot(boot_id)

    @property
    def cluster_id(self) -> str | None:
        """The cluster that the directories belong to; None if they are new."""
        return next((d.cluster_id for d in self._directories if d.cluster_id is not None), None)

    def set_cluster_id(self, cluster_id: str) -> None:
        """Write `meta.properties` where it is missing; ConfigError if it names another cluster."""
        for directory in self._directories:
            directory.join(self._broker_id, cluster_id)

    # --- change ----------------------------------------------------------------------------------

    def create(
        self,
        topic_partition: TopicPartition,
        topic_id: bytes,
        config: LogConfig,
        *,
        is_new: bool = False,
    ) -> Log:
        """Create an empty log. Unless the partition `is_new` it may be in an offline directory, and
        is not created a second time: OSError, as without any directory. DirectoryError if the disk
        fails."""
        log = self.make(topic_partition, topic_id, config, is_new=is_new)
        self.note_made()
        return log

    def make(
        self,
        topic_partition: TopicPartition,
        topic_id: bytes,
        config: LogConfig,
        *,
        is_new: bool = False,
    ) -> Log:
        """`create`, but nothing may be written to it before `note_made` has returned."""
        assert topic_partition not in self._logs, f"{topic_partition} exists"
        new = self.place(topic_partition, topic_id, is_new=is_new)
        directory = new.directory
        start = Start(is_clean=True)
        try:
            new.lay_out()
            log = open_log(self._files, new.path, topic_partition, config, start)
        except OSError as cause:
            raise DirectoryError(directory.path, cause) from cause
        self._places.made(topic_partition)
        self._logs[topic_partition] = log
        self._homes[topic_partition] = directory
        self._made.setdefault(directory, {})[topic_partition] = topic_id
        return log

    def place(
        self, topic_partition: TopicPartition, topic_id: bytes, *, is_new: bool = False
    ) -> NewLog:
        """Choose the directory for `make`; `lay_out` of the result may be called before it, in any
        thread. OSError as of `make`; InvalidTopic for a name that no directory may have."""
        if self._failed and not (is_new and self._directories):
            path, reason = next(iter(self._failed.items()))
            # Without any directory the broker is about to stop, but may still get requests to host.
            what = "has no other directory" if is_new else "may be there"
            raise OSError(errno.EIO, f"{topic_partition} {what}, but it is offline: {reason}", path)
        self.damaged.check(topic_partition)
        return self._places.place(topic_partition, topic_id, self._directories)

    def note_made(self) -> None:
        """Note the topic ids of logs made since the last call, durably, until their own files are
        durable. Suits a thread. DirectoryError."""
        with self._noting:
            made, self._made = self._made, {}
            for directory, ids in made.items():
                known = self.damaged.topic_ids_in(directory) | {
                    name: log.topic_id
                    for name in self._checkpoints.names_in(directory)
                    if (log := self._logs.get(name)) is not None and log.topic_id is not None
                }
                try:
                    directory.topic_ids.add(ids, known)
                except OSError as cause:
                    raise DirectoryError(directory.path, cause) from cause

    def give_topic_id(self, topic_partition: TopicPartition, topic_id: bytes) -> None:
        """Write the topic id of a log that was created before there were any. Raises OSError."""
        log = self._logs[topic_partition]
        for each in filter(None, (log, self.futures.get(topic_partition))):
            write_topic_id(self._files, each.directory, topic_id)
            each.topic_id = topic_id

    def delete(self, *names: TopicPartition) -> None:
        """Delete logs, durably; their names are free, their bytes go with the next `purge_deleted`.

        On DirectoryError any of them may be back after a power cut.
        """
        for path in dict.fromkeys([self.set_aside(name) for name in names]):
            self.sync_names(path)

    def set_aside(self, topic_partition: TopicPartition, *, is_stray: bool = False) -> Path:
        """Drop a log, and rename its directory; returns the log directory in which it was.

        After a power cut it may be back until `sync_names` returns. `is_stray`: it is kept.
        """
        if topic_partition in self.damaged:
            return self.damaged.set_aside(topic_partition, is_stray=is_stray)
        log = self._logs.pop(topic_partition)
        directory = self._homes.pop(topic_partition)
        self._places.hosted[directory] -= 1
        self.high_watermarks.pop(topic_partition, None)
        log.abandon()
        suffix = STRAY_SUFFIX if is_stray else DELETED_SUFFIX
        try:
            directory.set_aside(topic_partition, log.topic_id or bytes(16), suffix)
        except OSError as cause:
            raise DirectoryError(directory.path, cause) from cause
        finally:
            self.futures.delete(topic_partition)
        return directory.path

    def sync_names(self, path: Path) -> None:
        """Make `set_aside` in a log directory durable; suits a thread. DirectoryError."""
        for directory in self._directories:
            if directory.path == path:
                directory.sync()

    def purge_deleted(self) -> None:
        """Remove the bytes of deleted logs. Takes as long as the disk; suits a thread."""
        for directory in self._directories:
            directory.purge()

    def truncate(self, topic_partition: TopicPartition, offset: int) -> None:
        """Truncate a log, and lower the checkpoints that exceed its new end."""
        self.begin_truncate(topic_partition, offset)
        self._logs[topic_partition].settle()

    def begin_truncate(self, topic_partition: TopicPartition, offset: int) -> None:
        """`truncate`, except what waits for the disk or takes long: `learn` and `settle` do that
        for many logs at once. An earlier write to the log does it for that log."""
        log = self._logs[topic_partition]
        log.truncate(offset, settles=False)
        self.cut_future(topic_partition, log.log_end_offset)
        self._ended(topic_partition)

    def start_at(self, topic_partition: TopicPartition, offset: int) -> None:
        """Empty a log, to begin at an offset; otherwise as `truncate`."""
        self.begin_start_at(topic_partition, offset)
        self._logs[topic_partition].settle()

    def begin_start_at(self, topic_partition: TopicPartition, offset: int) -> None:
        """As `begin_truncate`."""
        self._logs[topic_partition].start_at(offset, settles=False)
        self.futures.cut(topic_partition, offset, self._checkpoints.lower, is_all=True)
        self._ended(topic_partition)

    def _ended(self, name: TopicPartition) -> None:
        log = self._logs[name]
        if self.high_watermarks.get(name, 0) > log.log_end_offset:
            self.high_watermarks[name] = log.log_end_offset
        if log.unsettled is not None:
            log.unsettled.before_writes = partial(
                self._checkpoints.lower, self._homes[name], (name,)
            )

    def learn(self, name: TopicPartition) -> Iterator[None]:
        """Find the producers of a truncated log, in steps."""
        log = self._logs.get(name)
        if log is not None and log.unsettled is not None:
            yield from log.unsettled.learn()

    def settle(self, names: Iterable[TopicPartition]) -> list[tuple[Log, OSError]]:
        """Complete truncations on disk; suits a thread. Returns failed logs. DirectoryError."""
        failed: list[tuple[Log, OSError]] = []
        done: dict[LogDirectory, dict[TopicPartition, Cut]] = {}
        for name in names:
            log, home = self._logs.get(name), self._homes.get(name)
            if log is None or home is None or log.unsettled is None:
                continue
            cut = log.unsettled
            try:
                cut.make_durable()
            except OSError as error:
                if log.is_failed:
                    continue  # deleted in the meantime, or known
                if not is_out_of_descriptors(error):  # else the next attempt may succeed
                    log.is_failed = True
                failed.append((log, error))
            else:
                done.setdefault(home, {})[name] = cut
        for home, cuts in done.items():
            self._checkpoints.lower(home, tuple(cuts))
            for cut in cuts.values():
                cut.has_become_durable()
        return failed

    def prefer(self, name: TopicPartition, path: Path) -> None:
        """Create the log in this directory, should it be created."""
        self._places.prefer(name, self._directory(path))

    def place_future(self, name: TopicPartition, path: Path, unique: bytes) -> NewFuture:
        return self.futures.place(self._logs[name], self._directory(path), unique)

    def lay_out_future(self, new: NewFuture) -> None:
        """Create its files; suits a thread. DirectoryError."""
        try:
            self._checkpoints.forget(new.directory, new.name)
            self.futures.lay_out(new)
        except OSError as cause:
            raise DirectoryError(new.directory.path, cause) from cause

    def cut_future(self, name: TopicPartition, offset: int) -> None:
        """End a future replica, if there is one, where it left the current one."""
        self.futures.cut(name, offset, self._checkpoints.lower)

    def promote(self, name: TopicPartition) -> Log:
        """Replace a log by its future replica, which has all of it; returns that. DirectoryError:
        nothing was replaced.

        Once its new name is durable, `futures.leave` and then `moved` have to be called.
        """
        current, source, future = self._logs[name], self._homes[name], self.futures.logs[name]
        target = self.futures.promote(name, current, source)
        self._logs[name], self._homes[name] = future, target
        self._places.hosted[source] -= 1
        self._places.hosted[target] += 1
        current.abandon()
        return future

    def moved(self, name: TopicPartition, source: Path) -> None:
        """Make a move's end durable; suits a thread. DirectoryError; OSError: one is offline."""
        left, home = self._directory(source), self._homes.get(name)
        left.sync()
        self._checkpoints.write_in(left, *ALL)
        if home is not None:  # not deleted in the meantime
            self._checkpoints.write_in(home, *ALL)
            self.futures.completed(name, home)

    def checkpoint_directory(self, path: Path) -> None:
        """Write all checkpoints of one directory; suits a thread. DirectoryError."""
        self._checkpoints.write_in(self._directory(path), *ALL)

    def _directory(self, path: Path) -> LogDirectory:
        for directory in self._directories:
            if directory.path == path:
                return directory
        raise OSError(errno.EIO, "the log directory is offline", str(path))

    def fail_directory(self, path: Path, error: Exception) -> list[TopicPartition]:
        """A log directory is out of reach: drop its logs as they are; returns their names.

        Nothing is written there any more, so it is scanned when it is back at a later start.
        """
        directory = next((each for each in self._directories if each.path == path), None)
        if directory is None:
            return []
        names = self._checkpoints.names_in(directory)
        self.damaged.directory_failed(directory)
        self.futures.directory_failed(directory, names)
        for name in names:
            del self._homes[name]
            self.high_watermarks.pop(name, None)
            log = self._logs.pop(name, None)
            if log is not None:
                log.abandon()
        self._directories = tuple(each for each in self._directories if each is not directory)
        self._failed[path] = error
        directory.release()
        return names

    # --- checkpoints -----------------------------------------------------------------------------

    def checkpoint_high_watermarks(self, high_watermarks: Mapping[TopicPartition, int]) -> None:
        """Write these, and the known ones of other logs. Waits for the disk."""
        self.high_watermarks.update(high_watermarks)
        self._checkpoints.write(HIGH_WATERMARKS, self._directories)

    def checkpoint_recovery_points(self) -> None:
        """Write each log's recovery point and log start. Waits for the disk."""
        self._checkpoints.write(RECOVERY_POINTS, self._directories)
        self._checkpoints.write(LOG_STARTS, self._directories)

    def close(self) -> None:
        """Stop cleanly; the high watermarks have been checkpointed before.

        Closes what can be closed, and marks directories clean where possible; then raises the
        first error, if any: OSError, or CorruptData of a damaged index.
        """
        failures: list[OSError | CorruptData] = []
        for directory in self._directories:
            before = len(failures)
            current = [self._logs[name] for name in self._checkpoints.names_in(directory)]
            for log in (*current, *self.futures.logs_in(directory)):
                try:
                    log.close()
                except (OSError, CorruptData) as error:
                    failures.append(error)
            if len(failures) == before:
                try:
                    self._checkpoints.write_in(directory, RECOVERY_POINTS, LOG_STARTS)
                    if not (self._is_suspect or self.damaged.are_in(directory)):
                        directory.mark_clean()
                except OSError as error:
                    failures.append(error)
        self.release()
        if failures:
            raise failures[0]

    def release(self) -> None:
        """Give back descriptors and locks and write nothing, as a process that dies does."""
        for log in (*self._logs.values(), *self.futures.logs.values()):
            log.release()
        for directory in self._directories:
            directory.release()
        self._directories = ()
