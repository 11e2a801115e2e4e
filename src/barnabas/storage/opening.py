"""Opens the logs in a log directory one after another at startup.

After a crash, child processes may first recover some of the logs (`recovery_children`).

A damaged log is skipped (`damaged_logs`), but a disk error stops the opening of the directory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from barnabas.config import LogConfig
from barnabas.errors import CorruptData
from barnabas.named_tuple import NamedTuple
from barnabas.storage.damaged_logs import DamagedLog
from barnabas.storage.directory import (
    HIGH_WATERMARKS,
    LOG_STARTS,
    RECOVERY_POINTS,
    LogDirectory,
)
from barnabas.storage.files import Files
from barnabas.storage.loading import Loading, Start
from barnabas.types import TopicPartition

if TYPE_CHECKING:
    from barnabas.storage.log import Log


class Opened(NamedTuple):
    """Represents a log in the directory that was opened or is damaged."""

    name: TopicPartition
    log: Log | DamagedLog
    high_watermark: int
    """The high watermark from the checkpoint, or the log end if that is lower."""
    is_back: bool
    """Whether the recovery point of the log is lower than the one in the checkpoint."""
    is_cut: bool
    """Whether the log ends below the high watermark from the checkpoint."""


class Opening:
    """Reads the metadata of the logs in a directory and opens the logs."""

    __slots__ = ("_config", "_directory", "_files", "_offsets", "_processes", "_start", "topic_ids")

    def __init__(
        self,
        files: Files,
        directory: LogDirectory,
        config: LogConfig,
        start: Start,
        processes: int,
    ) -> None:
        """Read the metadata of the logs.

        `start` describes what is known about all of the logs; up to `processes` processes may
        recover logs at the same time. Raises CorruptData or OSError.
        """
        self._files = files
        self._directory = directory
        self._config = config
        self._start = start
        self._processes = processes
        self._offsets: Mapping[str, Mapping[TopicPartition, int]] = {
            file: directory.read_checkpoint(file)
            for file in (RECOVERY_POINTS, LOG_STARTS, HIGH_WATERMARKS)
        }
        self.topic_ids = directory.topic_ids.read()

    def start_of(self, name: TopicPartition) -> Start:
        """Return what is known about the log that is opened next."""
        loading: Loading | None = self._start.loading
        # This raises LoadingStopped if loading was stopped.
        if loading is not None:
            loading.opening(name)
        return self._known_start(name)

    def _known_start(self, name: TopicPartition) -> Start:
        return self._start._replace(
            recovery_point=self._offsets[RECOVERY_POINTS].get(name, 0),
            log_start_offset=self._offsets[LOG_STARTS].get(name, 0),
            topic_id=self.topic_ids.get(name),
        )

    def logs(self, names: Sequence[TopicPartition]) -> Iterator[Opened]:
        """Open these logs. Raises OSError or LoadingStopped."""
        scanned = self._recover_in_children(names)
        for name in names:
            start = self.start_of(name)._replace(is_scanned=name in scanned)
            high_watermark = self._offsets[HIGH_WATERMARKS].get(name, 0)
            try:
                log = self._open(name, start)
            # If one log is damaged, the others can still be opened.
            except CorruptData as error:
                offsets = {file: at[name] for file, at in self._offsets.items() if name in at}
                damaged = DamagedLog(self._directory, offsets, self._topic_id(name, start), error)
                yield Opened(name, damaged, high_watermark, is_back=False, is_cut=False)
                continue
            end_offset = log.log_end_offset
            yield Opened(
                name,
                log,
                # Records that were lost from the log in a crash do not count as committed.
                min(high_watermark, end_offset),
                is_back=start.recovery_point > log.recovery_point,
                is_cut=high_watermark > end_offset,
            )

    def _recover_in_children(self, names: Sequence[TopicPartition]) -> set[TopicPartition]:
        """Recover logs in child processes if this is faster, and return the logs that were
        recovered.
        """
        if self._start.is_clean or self._processes < 2:
            return set()
        # Most starts do not need these modules, so import them here.
        from barnabas.storage.recovery_children import (
            Unscanned,
            are_worth_it,
            recover_all,
            unscanned_bytes,
        )

        logs = []
        for name in names:
            path, start = self._directory.path_of(name), self._known_start(name)
            size_bytes = unscanned_bytes(self._files, path, start.recovery_point)
            logs.append(Unscanned(name, path.absolute(), start, size_bytes))
        if not are_worth_it(self._processes, self._files, logs):
            return set()
        return recover_all(self._processes, self._config, logs, self._start.loading)

    def _topic_id(self, name: TopicPartition, start: Start) -> bytes | None:
        # imported only for a damaged log
        from barnabas.storage.partition_metadata import read_topic_id

        with suppress(CorruptData):
            return start.topic_id or read_topic_id(self._files, self._directory.path_of(name))
        return None

    def _open(self, name: TopicPartition, start: Start) -> Log:
        from barnabas.storage.recovery import open_log  # imported with the first log

        path = self._directory.path_of(name)
        log = open_log(self._files, path, name, self._config, start)
        if not 0 <= log.gaps.end <= log.log_end_offset:
            # Kafka has written to this log, so it may have gaps up to its current end. Records
            # written later have none.
            log.flush()
            log.gaps.note(log.log_end_offset)
        return log
