"""Tracks which log directories are online, which have failed, and which cluster they belong to.

A directory that has failed stays offline. This process does not access it again, and the next start
scans it if it can be used (KIP-112). The other directories stay online.

All directories belong to the same cluster. A crash of the whole machine may lose records. Until the
cluster knows about the loss, no shutdown counts as clean. Otherwise, the next start could not tell
that records may have been lost.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from pathlib import Path

from barnabas.errors import ConfigError
from barnabas.storage.directory import LogDirectory
from barnabas.storage.files import Files, Space
from barnabas.storage.strays import strays
from barnabas.types import TopicPartition


class LogDirectories:
    """The directories in `log.dirs`. Iterating over this object yields those that are online."""

    __slots__ = ("_broker_id", "_failures", "_files", "_online", "is_suspect")

    def __init__(self, files: Files, broker_id: int) -> None:
        self._files = files
        self._broker_id = broker_id
        # The tuple is replaced instead of changed, because threads that write checkpoints iterate
        # over it.
        self._online: tuple[LogDirectory, ...] = ()
        self._failures: dict[Path, Exception] = {}
        self.is_suspect = False
        """Whether the directories may have lost records that the cluster assumes to be there."""

    def __iter__(self) -> Iterator[LogDirectory]:
        return iter(self._online)

    def __len__(self) -> int:
        return len(self._online)

    @property
    def online(self) -> tuple[Path, ...]:
        return tuple(directory.path for directory in self._online)

    @property
    def failed(self) -> tuple[Path, ...]:
        """The directories that stay offline until the next start."""
        return tuple(self._failures)

    @property
    def reasons(self) -> tuple[Exception, ...]:
        """The reasons for which the directories in `failed` went offline, in the same order."""
        return tuple(self._failures.values())

    def find(self, path: Path) -> LogDirectory | None:
        """Return the directory with this path if it is online, otherwise None."""
        return next((each for each in self._online if each.path == path), None)

    def get(self, path: Path) -> LogDirectory:
        """Return the directory with this path. Raises OSError if the directory is offline."""
        directory = self.find(path)
        if directory is None:
            raise OSError(errno.EIO, "the log directory is offline", str(path))
        return directory

    def check_complete(self, name: TopicPartition, *, is_new: bool) -> None:
        """Raise OSError if an offline directory may contain a log with this name.

        If the partition `is_new`, no offline directory can contain it, but one directory must be
        online.
        """
        if self._failures and not (is_new and self._online):
            path, reason = next(iter(self._failures.items()))
            # When no directory is left, the broker is about to stop, but it may still receive
            # LeaderAndIsr requests.
            what = "has no other log directory" if is_new else "may be in this log directory"
            raise OSError(errno.EIO, f"{name} {what}, but it is offline: {reason}", path)

    # --- online and offline ----------------------------------------------------------------------

    def open(self, path: Path) -> LogDirectory:
        """Lock a directory and read its metadata. Raises ConfigError. Call `add` afterwards."""
        if path in self.online or path in self._failures:
            raise ConfigError(f"log directory {path} is listed twice in log.dirs")
        return LogDirectory(self._files, path, self._broker_id)

    def add(self, directory: LogDirectory) -> None:
        """Mark a directory as online."""
        self._online += (directory,)

    def fail(self, path: Path, error: Exception) -> None:
        """Mark a directory as offline, and release its lock if it is locked."""
        directory = self.find(path)
        self._online = tuple(each for each in self._online if each is not directory)
        self._failures[path] = error
        if directory is not None:
            directory.release()

    def release(self) -> None:
        """Release all locks."""
        for directory in self._online:
            directory.release()
        self._online = ()

    # --- their owner, and the machine's boot -----------------------------------------------------

    @property
    def cluster_id(self) -> str | None:
        """The id of the cluster to which the directories belong, or None if all of them are new."""
        return next((each.cluster_id for each in self._online if each.cluster_id is not None), None)

    def check_cluster(self) -> None:
        """Raise ConfigError if the directories belong to more than one cluster."""
        clusters = {each.cluster_id for each in self._online if each.cluster_id is not None}
        if len(clusters) > 1:
            raise ConfigError(
                f"the log directories belong to different clusters: {', '.join(clusters)}"
            )

    def set_cluster_id(self, cluster_id: str) -> None:
        """Write the missing `meta.properties` files. Raises ConfigError if one of them contains
        another cluster id.
        """
        for directory in self._online:
            directory.join(self._broker_id, cluster_id)

    def begins_whole(self, boot_id: bytes, *, has_damaged: bool) -> bool:
        """Return whether all logs are known to be complete.

        They may be incomplete if the machine has crashed (`LogDirectory.may_have_lost`), if a
        directory is offline, or if a log is damaged. In these cases, no shutdown counts as clean
        until `on_loss_known` is called, so that the next start detects the loss as well.
        """
        self.is_suspect = bool(self._failures or has_damaged) or any(
            directory.may_have_lost(boot_id) for directory in self._online
        )
        return not self.is_suspect

    def on_loss_known(self, boot_id: bytes) -> None:
        """Record that the cluster knows about the loss. From now on, the logs count as complete."""
        self.is_suspect = False
        for directory in self._online:
            directory.note_boot(boot_id)

    # --- what lies in them -----------------------------------------------------------------------

    def volume(self, path: Path, *, with_strays: bool = True) -> tuple[Space, dict[str, int]]:
        """Return the space on the volume of a log directory, and the sizes of the strays in the
        directory.

        Raises OSError.
        """
        return self._files.space(path), strays(self._files, path) if with_strays else {}

    def sync_names(self, path: Path) -> None:
        """Make the renames in a directory durable if it is online. This may run in a thread. Raises
        DirectoryError.
        """
        directory = self.find(path)
        if directory is not None:
            directory.sync()

    def purge_deleted(self) -> None:
        """Remove the files of deleted logs. This waits for the disk and may run in a thread."""
        for directory in self._online:
            directory.purge()
