"""Logs that could not be opened at the start, because something in their files is damaged.

Damage costs the log that has it, and no other one of its directory: it is not served, and its files
stay as they are. Its entries in the checkpoints stay, too: without a recovery point the next start
would scan all of it, and cut it off at the damage. So do the topic id and the high watermark.

If another broker has its records, the directory is set aside and the log begins again from there;
else it waits for an operator, who repairs the file or has it deleted.
"""

from __future__ import annotations

import errno
import logging
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from barnabas.errors import CorruptData
from barnabas.storage.directory import (
    DELETED_SUFFIX,
    STRAY_SUFFIX,
    DirectoryError,
    LogDirectory,
)
from barnabas.types import TopicPartition

_log = logging.getLogger(__name__)


class DamagedLog(NamedTuple):
    """One damaged log, as it was found."""

    directory: LogDirectory
    offsets: Mapping[str, int]
    """Its entries, by the checkpoint's file name."""
    topic_id: bytes | None
    """The id noted at its creation; None if that is not known."""
    error: CorruptData


class DamagedLogs(Mapping[TopicPartition, DamagedLog]):
    """Maps the partitions of a broker to their damaged logs."""

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
        """Log and keep one that was found."""
        _log.error(
            "%s is offline: %s; unless another broker has its records, restore the file and "
            "restart the broker, or delete the partition",
            log.directory.path_of(name),
            log.error,
        )
        self._logs[name] = log

    def check(self, name: TopicPartition) -> None:
        """Raise OSError if there is a damaged log of this name: no other can be made."""
        log = self._logs.get(name)
        if log is not None:
            path = log.directory.path_of(name)
            raise OSError(errno.EIO, f"a log there is damaged: {log.error}", str(path))

    def are_in(self, directory: LogDirectory) -> bool:
        """Return whether one lies in this directory, which is not marked clean then."""
        return any(log.directory is directory for log in self._logs.values())

    def offsets_in(self, directory: LogDirectory, file: str) -> dict[TopicPartition, int]:
        """Their entries in one checkpoint of a directory."""
        return {
            name: log.offsets[file]
            for name, log in list(self._logs.items())
            if log.directory is directory and file in log.offsets
        }

    def topic_ids_in(self, directory: LogDirectory) -> dict[TopicPartition, bytes]:
        """Their topic ids, as far as they are known."""
        return {
            name: log.topic_id
            for name, log in list(self._logs.items())
            if log.directory is directory and log.topic_id is not None
        }

    def set_aside(self, name: TopicPartition, *, is_stray: bool) -> Path:
        """Rename its directory: `is_stray` keeps the files, else the next purge removes them.
        Returns the log directory, which has to be synced. DirectoryError."""
        log = self._logs.pop(name)
        suffix = STRAY_SUFFIX if is_stray else DELETED_SUFFIX
        try:
            log.directory.set_aside(name, log.topic_id or bytes(16), suffix)
        except OSError as cause:
            raise DirectoryError(log.directory.path, cause) from cause
        return log.directory.path

    def on_directory_failed(self, directory: LogDirectory) -> None:
        """A directory is offline, and what lies there with it."""
        for name, log in list(self._logs.items()):
            if log.directory is directory:
                del self._logs[name]
