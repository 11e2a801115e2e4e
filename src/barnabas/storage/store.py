"""All logs of a broker, in its log directories.

Owns the order of a start and of a clean stop, which is what makes a stop clean. Start: lock every
directory and read what it is, and only if all of them can be had remove the markers and open the
logs. Stop: flush and close every log, write the checkpoints, and last the marker, per directory; a
directory of which any log failed gets none, and is scanned at the next start.

A log stays in the directory in which it was made: the one that then had the fewest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from barnabas.config import LogConfig
from barnabas.errors import ConfigError
from barnabas.storage.directory import (
    HIGH_WATERMARKS,
    LOG_STARTS,
    RECOVERY_POINTS,
    LogDirectory,
)
from barnabas.storage.files import Files
from barnabas.storage.log import Log
from barnabas.storage.partition_metadata import write_topic_id
from barnabas.storage.recovery import Start, open_log
from barnabas.types import TopicPartition

OffsetOf = Callable[[TopicPartition], int | None]


class LogStore:
    """The logs by partition. Everything is synchronous; what waits for a disk says so."""

    __slots__ = ("_broker_id", "_directories", "_files", "_homes", "_logs", "high_watermarks")

    def __init__(self, files: Files, broker_id: int) -> None:
        self._files = files
        self._broker_id = broker_id
        self._directories: list[LogDirectory] = []
        self._logs: dict[TopicPartition, Log] = {}
        self._homes: dict[TopicPartition, LogDirectory] = {}
        self.high_watermarks: dict[TopicPartition, int] = {}
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
        """Take the directories and open what is in them, recovering what a crash left.

        The logs get the broker's own `config`; whoever knows a topic's sets it later. Raises
        ConfigError with one line that says what to do, OSError, or CorruptData; everything is given
        back then.
        """
        store = cls(files, broker_id)
        try:
            for path in directories:
                store._take(Path(path))
            clusters = {d.cluster_id for d in store._directories if d.cluster_id is not None}
            if len(clusters) > 1:
                raise ConfigError(
                    f"the log directories belong to different clusters, {', '.join(clusters)}"
                )
            for directory in store._directories:
                store._open_logs(directory, config, now_ms)
        except BaseException:
            store._release()
            raise
        return store

    def _take(self, path: Path) -> None:
        if any(directory.path == path for directory in self._directories):
            raise ConfigError(f"log directory {path} is listed twice in log.dirs")
        directory = LogDirectory(self._files, path, self._broker_id)
        self._directories.append(directory)
        for topic_partition in directory.partitions():
            other = self._homes.setdefault(topic_partition, directory)
            if other is not directory:
                raise ConfigError(
                    f"{topic_partition} lies in {other.path} and in {path}; move one of the two "
                    "away, the one with fewer records"
                )

    def _open_logs(self, directory: LogDirectory, config: LogConfig, now_ms: int) -> None:
        recovery_points = directory.read_checkpoint(RECOVERY_POINTS)
        log_starts = directory.read_checkpoint(LOG_STARTS)
        high_watermarks = directory.read_checkpoint(HIGH_WATERMARKS)
        directory.begin()
        directory.purge()
        for topic_partition in directory.partitions():
            start = Start(
                is_clean=directory.was_clean,
                now_ms=now_ms,
                recovery_point=recovery_points.get(topic_partition, 0),
                log_start_offset=log_starts.get(topic_partition, 0),
            )
            path = directory.path_of(topic_partition)
            log = open_log(self._files, path, topic_partition, config, start)
            self._logs[topic_partition] = log
            # What a crash took from the log cannot have been seen by the next reader either.
            high_watermark = high_watermarks.get(topic_partition, 0)
            self.high_watermarks[topic_partition] = min(high_watermark, log.log_end_offset)

    @property
    def logs(self) -> Mapping[TopicPartition, Log]:
        return MappingProxyType(self._logs)

    @property
    def cluster_id(self) -> str | None:
        """The cluster that the directories belong to; None if they are new."""
        return next((d.cluster_id for d in self._directories if d.cluster_id is not None), None)

    def set_cluster_id(self, cluster_id: str) -> None:
        """Write `meta.properties` where it is missing; ConfigError if it names another cluster."""
        for directory in self._directories:
            directory.join(self._broker_id, cluster_id)

    def create(self, topic_partition: TopicPartition, topic_id: bytes, config: LogConfig) -> Log:
        """A new, empty log."""
        assert topic_partition not in self._logs, f"{topic_partition} exists"
        homes = list(self._homes.values())
        directory = min(self._directories, key=homes.count)
        path = directory.path_of(topic_partition)
        self._files.make_directory(path)
        write_topic_id(self._files, path, topic_id)
        log = open_log(self._files, path, topic_partition, config, Start(is_clean=True))
        self._logs[topic_partition] = log
        self._homes[topic_partition] = directory
        return log

    def delete(self, topic_partition: TopicPartition) -> None:
        """Forget a log; its name is free at once, its bytes go with the next `purge_deleted`."""
        log = self._logs.pop(topic_partition)
        directory = self._homes.pop(topic_partition)
        self.high_watermarks.pop(topic_partition, None)
        log.abandon()
        directory.set_aside(topic_partition, log.topic_id or bytes(16))

    def purge_deleted(self) -> None:
        """Remove the bytes of deleted logs. Takes as long as the disk; suits a thread."""
        for directory in self._directories:
            directory.purge()

    # --- checkpoints -----------------------------------------------------------------------------

    def checkpoint_high_watermarks(self, high_watermarks: Mapping[TopicPartition, int]) -> None:
        """Write these, and those known before for logs that are not named. Waits for the disk."""
        self.high_watermarks.update(high_watermarks)
        self._checkpoint(HIGH_WATERMARKS, self.high_watermarks.get)

    def checkpoint_recovery_points(self) -> None:
        """Write up to where each log is durable, and where it begins. Waits for the disk."""
        self._checkpoint(RECOVERY_POINTS, self._recovery_point)
        self._checkpoint(LOG_STARTS, self._log_start)

    def _checkpoint(self, file: str, offset_of: OffsetOf) -> None:
        for directory in self._directories:
            self._checkpoint_in(directory, file, offset_of)

    def _checkpoint_in(self, directory: LogDirectory, file: str, offset_of: OffsetOf) -> None:
        offsets = {
            name: offset
            for name in self._names_in(directory)
            if (offset := offset_of(name)) is not None
        }
        directory.write_checkpoint(file, offsets)

    def _names_in(self, directory: LogDirectory) -> list[TopicPartition]:
        return [name for name, home in list(self._homes.items()) if home is directory]

    def _recovery_point(self, name: TopicPartition) -> int | None:
        log = self._logs.get(name)
        return None if log is None else log.recovery_point

    def _log_start(self, name: TopicPartition) -> int | None:
        """The log start, if the first segment's name does not say it."""
        log = self._logs.get(name)
        if log is None or log.log_start_offset <= log.segments[0].base_offset:
            return None
        return log.log_start_offset

    def close(self) -> None:
        """A clean stop; the high watermarks have been checkpointed before.

        What can be closed is closed, and a directory that can be left clean is left so; then the
        first OSError is raised, if there was one.
        """
        failures: list[OSError] = []
        for directory in self._directories:
            before = len(failures)
            for name in self._names_in(directory):
                try:
                    self._logs[name].close()
                except OSError as error:
                    failures.append(error)
            if len(failures) == before:
                try:
                    self._checkpoint_in(directory, RECOVERY_POINTS, self._recovery_point)
                    self._checkpoint_in(directory, LOG_STARTS, self._log_start)
                    directory.mark_clean()
                except OSError as error:
                    failures.append(error)
        self._release()
        if failures:
            raise failures[0]

    def _release(self) -> None:
        """Give back descriptors and locks, as they are."""
        for log in self._logs.values():
            log.release()
        for directory in self._directories:
            directory.release()
        self._directories.clear()
