"""Writes the offset checkpoints of all log directories.

    recovery-point-offset-checkpoint    the offset from which a start after a crash has to scan
    log-start-offset-checkpoint         the log start, if it is not the start of the first segment
    replication-offset-checkpoint       the high watermark

The files in a directory list all logs in that directory, including those that are being moved to it
(`future_logs`). The previous entries of damaged logs are kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from barnabas.storage.damaged_logs import DamagedLogs
from barnabas.storage.directory import (
    HIGH_WATERMARKS,
    LOG_STARTS,
    RECOVERY_POINTS,
    DirectoryError,
    LogDirectory,
)
from barnabas.storage.future_logs import FutureLogs
from barnabas.types import TopicPartition

if TYPE_CHECKING:
    from barnabas.storage.log import Log

ALL = (RECOVERY_POINTS, LOG_STARTS, HIGH_WATERMARKS)


class OffsetCheckpoints:
    """Writes the checkpoints in all directories of a broker. All methods wait for the disk."""

    __slots__ = ("_damaged", "_futures", "_homes", "_logs", "high_watermarks")

    def __init__(
        self,
        logs: Mapping[TopicPartition, Log],
        homes: Mapping[TopicPartition, LogDirectory],
        futures: FutureLogs,
        damaged: DamagedLogs,
    ) -> None:
        self._logs = logs
        self._homes = homes
        self._futures = futures
        self._damaged = damaged
        self.high_watermarks: dict[TopicPartition, int] = {}

    def names_in(self, directory: LogDirectory) -> list[TopicPartition]:
        """List the logs in a directory. Logs that are being moved to it are not listed."""
        return [name for name, home in list(self._homes.items()) if home is directory]

    def write(self, file: str, directories: Iterable[LogDirectory]) -> None:
        """Write this checkpoint in all directories. If some of them fail, raise the first
        DirectoryError at the end.
        """
        failures: list[DirectoryError] = []
        for directory in directories:
            try:
                self.write_in(directory, file)
            except DirectoryError as error:
                # If one directory fails, the checkpoints in the others must still be written.
                failures.append(error)
        if failures:
            raise failures[0]

    def write_in(self, directory: LogDirectory, *files: str) -> None:
        """Write these checkpoints in one directory. Raises DirectoryError."""
        for file in files:
            # A truncation may lower a recovery point while a thread is writing the old value. The
            # new value must then be written after the old one.
            with directory.checkpointing[file]:
                names = [*self.names_in(directory), *self._futures.names_in(directory)]
                offsets = self._damaged.offsets_in(directory, file) | {
                    name: offset
                    for name in names
                    if (offset := self._offset(directory, file, name)) is not None
                }
                directory.write_checkpoint(file, offsets)

    def forget(self, directory: LogDirectory, name: TopicPartition) -> None:
        """Remove an earlier log with this name from the files. Raises DirectoryError.

        If they were kept, the new log would get the offsets of the earlier one after a crash.
        """
        for file in ALL:
            with directory.checkpointing[file]:
                is_named = directory.is_in_checkpoint(file, name)
            if is_named:
                self.write_in(directory, file)

    def lower(self, directory: LogDirectory, names: Sequence[TopicPartition]) -> None:
        """Lower all offsets that are above the end of these truncated logs. Raises DirectoryError.

        Without this, records written later at these offsets would count as durable, committed or
        deleted after the next start.
        """
        for file in (RECOVERY_POINTS, HIGH_WATERMARKS, LOG_STARTS):
            with directory.checkpointing[file]:
                is_above = any(
                    directory.checkpoint_offset(file, name)
                    > (self._offset(directory, file, name) or 0)
                    for name in names
                )
            if is_above:
                self.write_in(directory, file)

    def _offset(self, directory: LogDirectory, file: str, name: TopicPartition) -> int | None:
        """Return the offset to be written for a log, or None if the log needs no line."""
        is_future = self._futures.home(name) is directory
        log = self._futures.get(name) if is_future else self._logs.get(name)
        if file == HIGH_WATERMARKS:
            high_watermark = self.high_watermarks.get(name)
            # A future replica has the same high watermark as the current one, limited to its own
            # log end.
            if not is_future or high_watermark is None or log is None:
                return high_watermark
            return min(high_watermark, log.log_end_offset)
        if log is None:
            return None
        if file == RECOVERY_POINTS:
            return log.recovery_checkpoint
        # As in Kafka, a log needs no line if it begins at the start of its first segment.
        begins_within = log.log_start_offset > log.segments[0].base_offset
        return log.log_start_offset if begins_within else None
