"""Tracks logs that could not be opened at startup because their files were damaged.

The other logs in the directory are not affected. A damaged log is not served and its files are left
unchanged. Its topic id, its high watermark and its other checkpoint entries are kept as well.
Without its recovery point, the next start would scan the whole log and truncate it where it is
damaged.

If another broker has the records, the log's directory is set aside and a new log is copied from
that broker. Otherwise, an operator has to repair the file or delete the log.
"""

from __future__ import annotations

import errno
import logging
from collections.abc import Iterator, Mapping
from pathlib import Path

from barnabas.errors import CorruptData
from barnabas.named_tuple import NamedTuple
from barnabas.storage.directory import (
    DELETED_SUFFIX,
    STRAY_SUFFIX,
    DirectoryError,
    LogDirectory,
)
from barnabas.types import TopicPartition

_log = logging.getLogger(__name__)


class DamagedLog(NamedTuple):
    """Represents a damaged log found at startup."""

    directory: LogDirectory
    offsets: Mapping[str, int]
    """The checkpoint entries of the log, by the name of the checkpoint file."""
    topic_id: bytes | None
    """The topic id that was stored when the topic was created, or None if no id is known."""
    error: CorruptData


class DamagedLogs(Mapping[TopicPartition, DamagedLog]):
    """The damaged logs of a broker, by partition."""

    __slots__ = ("_logs",)

    def __init__(self) -> None:
        self._logs: dict[TopicPartition, DamagedLog] = {}

    def __getitem__(self, name: TopicPartition) -> DamagedLog:
        return self._logs[name]

    def __iter__(self) -> Iterator[TopicPartition]:
        return iter(self._logs)

    def __len__(self) -> int:
        return len(self._logs)

    def add(self, name: TopicPartition, log: DamagedLog) -> None:
        """Record a damaged log and write a message about the damage to the broker's log."""
        _log.error(
            "%s is offline: %s; unless another broker has its records, restore the file and "
            "restart the broker, or delete the partition",
            log.directory.path_of(name),
            log.error,
        )
        self._logs[name] = log

    def check(self, name: TopicPartition) -> None:
        """Raise OSError if a damaged log has this name, because no other log may be created with
        it.
        """
        log = self._logs.get(name)
        if log is not None:
            path = log.directory.path_of(name)
            raise OSError(errno.EIO, f"the log is damaged: {log.error}", str(path))

    def are_in(self, directory: LogDirectory) -> bool:
        """Return whether the directory contains a damaged log. Such a directory must not be marked
        as clean.
        """
        return any(log.directory is directory for log in self._logs.values())

    def offsets_in(self, directory: LogDirectory, file: str) -> dict[TopicPartition, int]:
        """Return the entries of the damaged logs in one checkpoint file of a directory."""
        return {
            name: log.offsets[file]
            for name, log in list(self._logs.items())
            if log.directory is directory and file in log.offsets
        }

    def topic_ids_in(self, directory: LogDirectory) -> dict[TopicPartition, bytes]:
        """Return the topic ids of the damaged logs for which the id is known."""
        return {
            name: log.topic_id
            for name, log in list(self._logs.items())
            if log.directory is directory and log.topic_id is not None
        }

    def set_aside(self, name: TopicPartition, *, is_stray: bool) -> Path:
        """Rename the directory of a damaged log.

        If `is_stray` is set, the files are kept; otherwise, they are removed by the next purge.

        Returns the log directory, which the caller must sync. Raises DirectoryError.
        """
        log = self._logs.pop(name)
        suffix = STRAY_SUFFIX if is_stray else DELETED_SUFFIX
        try:
            log.directory.set_aside(name, log.topic_id or bytes(16), suffix)
        except OSError as cause:
            raise DirectoryError(log.directory.path, cause) from cause
        return log.directory.path

    def on_directory_failed(self, directory: LogDirectory) -> None:
        """Forget the damaged logs in a directory that went offline."""
        for name, log in list(self._logs.items()):
            if log.directory is directory:
                del self._logs[name]
