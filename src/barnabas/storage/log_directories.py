"""Tracks which log directories are online, which have failed, and which cluster they belong to.

A directory that fails stays offline: the process does not touch it again, and the next start scans
it if it is usable (KIP-112). The other directories stay online.

All directories belong to one cluster. A crash of the whole machine may lose records. Until the
cluster has learned of the loss, no stop counts as clean; otherwise, the next start could not detect
it again.
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
    """The directories of `log.dirs`. Iteration yields the online ones."""

    __slots__ = ("_broker_id", "_failures", "_files", "_online", "is_suspect")

    def __init__(self, files: Files, broker_id: int) -> None:
        self._files = files
        self._broker_id = broker_id
        # Replaced, never changed in place: threads that write checkpoints iterate over it.
        self._online: tuple[LogDirectory, ...] = ()
        self._failures: dict[Path, Exception] = {}
        self.is_suspect = False
        """Whether the directories may have lost records without the cluster's knowledge."""

    def __iter__(self) -> Iterator[LogDirectory]:
        return iter(self._online)

    def __len__(self) -> int:
        return len(self._online)

    @property
    def online(self) -> tuple[Path, ...]:
        return tuple(directory.path for directory in self._online)

    @property
    def failed(self) -> tuple[Path, ...]:
        """The directories that are offline until the next start."""
        return tuple(self._failures)

    @property
    def reasons(self) -> tuple[Exception, ...]:
        """Why the offline directories failed, in the order of `failed`."""
        return tuple(self._failures.values())

    def find(self, path: Path) -> LogDirectory | None:
        """Return the directory at this path if it is online, otherwise None."""
        return next((each for each in self._online if each.path == path), None)

    def get(self, path: Path) -> LogDirectory:
        """Return the directory at this path. Raises OSError if it is offline."""
        directory = self.find(path)
        if directory is None:
            raise OSError(errno.EIO, "the log directory is offline", str(path))
        return directory

    def check_complete(self, name: TopicPartition, *, is_new: bool) -> None:
        """Raise OSError if a log of this name may be in an offline directory.

        A partition that `is_new` cannot be in an offline one, but needs an online directory.
        """
        if self._failures and not (is_new and self._online):
            path, reason = next(iter(self._failures.items()))
            # If no directory is left, the broker is about to stop, but may still receive
            # LeaderAndIsr requests.
            what = "has no other log directory" if is_new else "may be in this log directory"
            raise OSError(errno.EIO, f"{name} {what}, but it is offline: {reason}", path)

    # --- online and offline ----------------------------------------------------------------------

    def open(self, path: Path) -> LogDirectory:
        """Lock a directory and read its metadata; call `add` next. Raises ConfigError."""
        if path in self.online or path in self._failures:
            raise ConfigError(f"log directory {path} is listed twice in log.dirs")
        return LogDirectory(self._files, path, self._broker_id)

    def add(self, directory: LogDirectory) -> None:
        """Put a directory online."""
        self._online += (directory,)

    def fail(self, path: Path, error: Exception) -> None:
        """Take a directory offline, and release any lock on it."""
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
        """The id of the directories' cluster; None if they are new."""
        return next((each.cluster_id for each in self._online if each.cluster_id is not None), None)

    def check_cluster(self) -> None:
        """Raise ConfigError if the directories belong to more than one cluster."""
        clusters = {each.cluster_id for each in self._online if each.cluster_id is not None}
        if len(clusters) > 1:
            raise ConfigError(
                f"the log directories belong to different clusters: {', '.join(clusters)}"
            )

    def set_cluster_id(self, cluster_id: str) -> None:
        """Write `meta.properties` where it is missing. Raises ConfigError if it names another
        cluster.
        """
        for directory in self._online:
            directory.join(self._broker_id, cluster_id)

    def begins_whole(self, boot_id: bytes, *, has_damaged: bool) -> bool:
        """Return whether the logs are complete.

        They may be incomplete after a crash of the machine (`LogDirectory.may_have_lost`), or if a
        directory is offline or a log is damaged. If they are, no stop counts as clean until
        `on_loss_known`, so that the next start detects the loss again.
        """
        self.is_suspect = bool(self._failures or has_damaged) or any(
            directory.may_have_lost(boot_id) for directory in self._online
        )
        return not self.is_suspect

    def on_loss_known(self, boot_id: bytes) -> None:
        """Note that the cluster knows of the loss, after which the logs count as complete."""
        self.is_suspect = False
        for directory in self._online:
            directory.note_boot(boot_id)

    # --- what lies in them -----------------------------------------------------------------------

    def volume(self, path: Path, *, with_strays: bool = True) -> tuple[Space, dict[str, int]]:
        """Return the space on a log directory's volume, and the sizes of the strays in it.

        Raises OSError.
        """
        return self._files.space(path), strays(self._files, path) if with_strays else {}

    def sync_names(self, path: Path) -> None:
        """Make renames in a directory durable, if it is online. Can run in a thread. Raises
        DirectoryError.
        """
        directory = self.find(path)
        if directory is not None:
            directory.sync()

    def purge_deleted(self) -> None:
        """Remove the files of deleted logs. Waits for the disk; can run in a thread."""
        for directory in self._online:
            directory.purge()
