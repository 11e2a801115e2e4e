"""Tracks logs that could not be opened at startup because their files are damaged.

A damaged log does not affect the other logs in its directory. It is not served, and its files stay
unchanged. Its checkpoint entries are kept: without a recovery point, the next start would scan the
whole log and truncate it at the damage. So are its topic id and high watermark.

If another broker has its records, the directory is set aside and the log is copied from that
broker. Otherwise, an operator has to repair the file or have it deleted.
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
    """A damaged log that was found at startup."""

    directory: LogDirectory
    offsets: Mapping[str, int]
    """The log's checkpoint entries, by checkpoint file name."""
    topic_id: bytes | None
    """The topic id stored when the topic was created; None if it is unknown."""
    error: CorruptData


class DamagedLogs(Mapping[TopicPartition, DamagedLog]):
    """A broker's damaged logs, by partition."""

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
        """Record a damaged log, and report the damage in the broker's log."""
        _log.error(
            "%s is offline: %s; unless another broker has its records, restore the file and "
            "restart the broker, or delete the partition",
            log.directory.path_of(name),
            log.error,
        )
        self._logs[name] = log

    def check(self, name: TopicPartition) -> None:
        """Raise OSError if a damaged log has this name, because no other log may take it."""
        log = self._logs.get(name)
        if log is not None:
            path = log.directory.path_of(name)
            raise OSError(errno.EIO, f"the log is damaged: {log.error}", str(path))

    def are_in(self, directory: LogDirectory) -> bool:
        """Return whether this directory contains a damaged log, and so must not be marked clean."""
        return any(log.directory is directory for log in self._logs.values())

    def offsets_in(self, directory: LogDirectory, file: str) -> dict[TopicPartition, int]:
        """Return the damaged logs' entries in one checkpoint of a directory."""
        return {
            name: log.offsets[file]
            for name, log in list(self._logs.items())
            if log.directory is directory and file in log.offsets
        }

    def topic_ids_in(self, directory: LogDirectory) -> dict[TopicPartition, bytes]:
        """Return the known topic ids of the damaged logs."""
        return {
            name: log.topic_id
            for name, log in list(self._logs.items())
            if log.directory is directory and log.topic_id is not None
        }

    def set_aside(self, name: TopicPartition, *, is_stray: bool) -> Path:
        """Rename a damaged log's directory.

        With `is_stray`, its files are kept; otherwise, the next purge removes them.

        Returns the log directory, which must then be synced. Raises DirectoryError.
        """
        log = self._logs.pop(name)
        suffix = STRAY_SUFFIX if is_stray else DELETED_SUFFIX
        try:
            log.directory.set_aside(name, log.topic_id or bytes(16), suffix)
        except OSError as cause:
            raise DirectoryError(log.directory.path, cause) from cause
        return log.directory.path

    def on_directory_failed(self, directory: LogDirectory) -> None:
        """Forget the damaged logs in a directory that has gone offline."""
        for name, log in list(self._logs.items()):
            if log.directory is directory:
                del self._logs[name]
