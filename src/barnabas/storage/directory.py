"""Manages one directory of `log.dirs`: its owner, its clean shutdown marker and its checkpoints.

    .lock                               held while a broker runs on it
    meta.properties                     version=0, broker.id, cluster.id
    .kafka_cleanshutdown                {"version":0,"brokerEpoch":-1}; only after a clean stop
    .barnabas_boot                      the id of the machine's last boot (only in a cluster)
    .barnabas_clock                     the newest wall time that could be trusted (`seen_time`)
    recovery-point-offset-checkpoint    the offset below which each partition is certainly on disk
    replication-offset-checkpoint       high watermarks
    log-start-offset-checkpoint         log starts that are not the start of the first segment
    .barnabas_pulse                     written periodically in a cluster, to notice a hung disk
    .barnabas_topic_ids                 the topic ids of the newest partitions
    .barnabas_moves                     the partitions that are being moved here
    cleaner-offset-checkpoint           the offset below which each compacted partition is clean
    <topic>-<partition>/                a replica
    <topic>-<partition>.<32 hex>-delete/     a deleted replica that is about to be removed
    <topic>-<partition>.<32 hex>-stray/      a replica of another topic of that name (unused)
    <topic>-<partition>.<32 hex>-future/     a replica moving here from another directory

Invariant: the clean shutdown marker exists only while the directory has not changed since the
shutdown. The marker is removed, durably, before the first log is opened.

Only the checkpoint of log starts is indispensable, because no other file shows which records were
deleted by request. If another checkpoint cannot be read, the broker starts with an empty one.
"""

from __future__ import annotations

import errno
import logging
import threading
from collections.abc import Mapping
from pathlib import Path

from barnabas.config import parse_properties
from barnabas.errors import ConfigError, CorruptData
from barnabas.storage.checkpoint import encode_entries, read_offsets, replace_file, write_offsets
from barnabas.storage.files import Files, Lock
from barnabas.storage.topic_ids import TopicIds
from barnabas.types import TopicPartition

_log = logging.getLogger(__name__)

RECOVERY_POINTS = "recovery-point-offset-checkpoint"
HIGH_WATERMARKS = "replication-offset-checkpoint"
LOG_STARTS = "log-start-offset-checkpoint"
CLEANER = "cleaner-offset-checkpoint"

LOCK_NAME = ".lock"
META_NAME = "meta.properties"
_CLEAN_MARKER = ".kafka_cleanshutdown"
_CLEAN_MARKER_TEXT = b'{"version":0,"brokerEpoch":-1}'
_BOOT = ".barnabas_boot"
_KRAFT_LOG = "__cluster_metadata-0"
_NOT_OURS = frozenset({"remote-log-index-cache", "lost+found"})
DELETED_SUFFIX, STRAY_SUFFIX = "-delete", "-stray"
_FUTURE_SUFFIX = "-future"
_OTHER_SUFFIXES = (DELETED_SUFFIX, STRAY_SUFFIX, _FUTURE_SUFFIX)
_IDS = 1 << 128
_MAX_NAME = 255


class UnusableDirectory(ConfigError):
    """Raised if a directory cannot be used because of a disk problem or missing permissions."""


def unusable(path: Path, cause: OSError | CorruptData) -> UnusableDirectory:
    """Return an error that tells the operator how to make the directory usable."""
    if isinstance(cause, OSError):
        what = f"{cause.strerror} ({cause.filename})" if cause.filename else str(cause.strerror)
        return UnusableDirectory(
            f"log directory {path} cannot be used: {what}; repair its disk and restart the broker"
        )
    return UnusableDirectory(
        f"log directory {path} cannot be used: {cause}; repair it, or move the damaged files "
        "elsewhere if they are not needed, and restart the broker"
    )


class DirectoryError(OSError):
    """Raised if an operation on a whole log directory has failed."""

    def __init__(self, directory: Path, cause: OSError) -> None:
        super().__init__(cause.errno, cause.strerror, str(cause.filename or directory))
        self.directory = directory


class LogDirectory:
    """Represents a log directory that is locked by this broker."""

    __slots__ = (
        "_files",
        "_future_names",
        "_lock",
        "_written",
        "checkpointing",
        "cluster_id",
        "path",
        "topic_ids",
        "was_clean",
    )

    def __init__(self, files: Files, path: Path, broker_id: int) -> None:
        """Lock the directory, creating it if it does not exist.

        Raises ConfigError if the directory belongs to another broker, or UnusableDirectory if the
        disk or the permissions do not allow using it.
        """
        self.path = path
        self._files = files
        self._written: dict[str, Mapping[TopicPartition, int]] = {}
        self._future_names: list[str] = []
        self.checkpointing = {
            name: threading.Lock() for name in (RECOVERY_POINTS, HIGH_WATERMARKS, LOG_STARTS)
        }
        """The locks held while a checkpoint is built and written.

        Only threads may acquire them, because the thread that holds a lock waits for the disk.
        """
        self.topic_ids = TopicIds(files, path)
        try:
            _make_directory(files, path)
            self._lock: Lock = files.lock(path / LOCK_NAME)
        except BlockingIOError as cause:
            raise ConfigError(
                f"log directory {path} is locked by another broker; stop that broker, or set "
                "another directory in log.dirs"
            ) from cause
        except OSError as cause:
            is_file = isinstance(cause, FileExistsError)
            reason = "Not a directory" if is_file else cause.strerror
            raise UnusableDirectory(
                f"log directory {path} cannot be written: {reason}; change its owner, or "
                "set another directory in log.dirs"
            ) from cause
        try:
            self.cluster_id = self._read_meta(broker_id)
            self.was_clean = any(entry.name == _CLEAN_MARKER for entry in files.list(path))
        except OSError as cause:
            self._lock.release()
            raise UnusableDirectory(
                f"log directory {path} cannot be read: {cause.strerror}; repair its disk, or set "
                "another directory in log.dirs"
            ) from cause
        except BaseException:
            self._lock.release()
            raise

    def _read_meta(self, broker_id: int) -> str | None:
        """Return the id of the cluster to which the directory belongs, or None if it belongs to no
        cluster yet.
        """
        names = {entry.name for entry in self._files.list(self.path)}
        meta: dict[str, str] = {}
        if META_NAME in names:
            try:
                meta = parse_properties(self._files.read(self.path / META_NAME).decode())
            except UnicodeDecodeError as cause:
                raise UnusableDirectory(
                    f"{self.path / META_NAME} is damaged, so the directory's owner is unknown; "
                    "restore it, or remove it if this broker wrote the directory"
                ) from cause
        # In ZooKeeper mode, this file has version 0; in KRaft mode, it has version 1.
        if _KRAFT_LOG in names or meta.get("version") == "1":
            raise ConfigError(
                f"log directory {self.path} was written by Kafka in KRaft mode, which this "
                "broker cannot read; set another directory in log.dirs"
            )
        # If there is no cluster id, either the directory is new or its broker has not joined a
        # cluster yet.
        owner = meta.get("broker.id", str(broker_id))
        if owner != str(broker_id):
            raise ConfigError(
                f"log directory {self.path} belongs to broker.id {owner}, but this broker has "
                f"broker.id {broker_id}; set broker.id={owner}, or set another directory in "
                "log.dirs"
            )
        return meta.get("cluster.id")

    def join(self, broker_id: int, cluster_id: str) -> None:
        """Assign the directory to this broker and cluster. Raises ConfigError if it belongs to
        another broker or cluster.
        """
        if self.cluster_id == cluster_id:
            return
        if self.cluster_id is not None:
            raise ConfigError(
                f"log directory {self.path} belongs to cluster {self.cluster_id}, but this "
                f"broker is in {cluster_id}; set another directory in log.dirs"
            )
        text = f"#\nversion=0\nbroker.id={broker_id}\ncluster.id={cluster_id}\n"
        replace_file(self._files, self.path / META_NAME, text.encode())
        self.cluster_id = cluster_id

    # --- clean or not ----------------------------------------------------------------------------

    def begin(self) -> None:
        """Remove the clean shutdown marker, so that the next start can tell that this broker has
        crashed.
        """
        # As in Kafka, remove the marker before anything is written. Otherwise, a crash could look
        # like a clean shutdown.
        if self.was_clean:
            self._files.remove(self.path / _CLEAN_MARKER)
        # A broker that was killed may have renamed a checkpoint without syncing the directory.
        # Without this sync, a power failure could undo the rename.
        self._files.sync(self.path)
        names = {entry.name for entry in self._files.list(self.path)}
        for name in (RECOVERY_POINTS, HIGH_WATERMARKS, LOG_STARTS, CLEANER):
            if name not in names:
                # A torn checkpoint can be replaced by an empty one, except for the checkpoint of
                # log starts.
                content, must_last = encode_entries(()), name == LOG_STARTS
                replace_file(self._files, self.path / name, content, sync=must_last)

    def mark_clean(self) -> None:
        """Write the clean shutdown marker. This is the last step of a shutdown."""
        replace_file(self._files, self.path / _CLEAN_MARKER, _CLEAN_MARKER_TEXT)

    def may_have_lost(self, boot_id: bytes) -> bool:
        """Return whether a crash of the machine may have lost records in this directory.

        After a `kill -9`, unsynced data is still in the page cache. `boot_id` identifies the
        current boot of the machine; it is empty if the boot is unknown. A new directory is treated
        as if it had lost everything.
        """
        if self.was_clean:
            return False
        try:
            # If the machine has not been rebooted, the page cache still contains everything that
            # the old process wrote.
            return not boot_id or self._files.read(self.path / _BOOT) != boot_id
        except FileNotFoundError:
            return True

    def note_boot(self, boot_id: bytes) -> None:
        """Store the id of the machine's current boot, so that `may_have_lost` can compare it."""
        self._files.write(self.path / _BOOT, boot_id)

    def release(self) -> None:
        self._lock.release()

    # --- checkpoints -----------------------------------------------------------------------------

    def read_checkpoint(self, name: str) -> dict[TopicPartition, int]:
        """Read the offsets stored in a checkpoint.

        Raises CorruptData if the checkpoint is indispensable but cannot be read.
        """
        try:
            offsets = read_offsets(self._files, self.path / name)
        except CorruptData as error:
            if name == LOG_STARTS:
                raise CorruptData(
                    f"{error}; restore it, or remove it, which brings back records deleted by "
                    "DeleteRecords"
                ) from error
            _log.warning("%s; ignoring this checkpoint", error)
            return {}
        self._written[name] = dict(offsets)
        return offsets

    def is_in_checkpoint(self, name: str, topic_partition: TopicPartition) -> bool:
        """Return whether the partition was in the checkpoint when the checkpoint was last read or
        written.
        """
        return topic_partition in self._written.get(name, ())

    def checkpoint_offset(self, name: str, topic_partition: TopicPartition) -> int:
        """Return the partition's offset in the checkpoint that was last read or written, or 0 if
        the partition has no entry.
        """
        return self._written.get(name, {}).get(topic_partition, 0)

    def write_checkpoint(self, name: str, offsets: Mapping[TopicPartition, int]) -> None:
        """Write a checkpoint durably, but only if it has changed, so that an idle broker does not
        write to its disk.

        Raises DirectoryError.
        """
        if self._written.get(name) != offsets:
            try:
                write_offsets(self._files, self.path / name, offsets)
            except OSError as cause:
                raise DirectoryError(self.path, cause) from cause
            self._written[name] = offsets

    # --- partitions ------------------------------------------------------------------------------

    def partitions(self) -> list[TopicPartition]:
        """List the replicas in the directory. Raises ConfigError if it contains a subdirectory that
        is not a replica.
        """
        found = []
        self._future_names = []
        for entry in self._files.list(self.path):
            # Skip the cache directory of tiered storage and the lost+found directory of fsck.
            if not entry.is_directory or entry.name in _NOT_OURS:
                continue
            if not entry.name.endswith(_OTHER_SUFFIXES):
                found.append(self._parse(entry.name))
            elif entry.name.endswith(_FUTURE_SUFFIX):
                self._future_names.append(entry.name)
        return found

    def _parse(self, name: str) -> TopicPartition:
        topic, _, partition = name.rpartition("-")
        if not topic or not partition.isascii() or not partition.isdecimal():
            raise ConfigError(
                f"{self.path / name} is not named <topic>-<partition>; a log directory may contain "
                "no other directories, so move it elsewhere"
            )
        return TopicPartition(topic, int(partition))

    def path_of(self, topic_partition: TopicPartition) -> Path:
        return self.path / str(topic_partition)

    def futures(self) -> list[tuple[TopicPartition, Path]]:
        """List the future replicas that the last call of `partitions` has found.

        Raises ConfigError if one of these subdirectories is not a future replica.
        """
        return [
            (self._parse(name.rpartition(".")[0]), self.path / name) for name in self._future_names
        ]

    def future_path(self, topic_partition: TopicPartition, unique: bytes) -> Path:
        """Return the path that Kafka would use for a replica that is moved to this directory.

        `unique` has 16 bytes. The name may be too long for the file system; see `future_name_fits`.
        """
        return self.path / f"{topic_partition}.{unique.hex()}{_FUTURE_SUFFIX}"

    def set_aside(
        self,
        topic_partition: TopicPartition,
        unique: bytes,
        suffix: str,
        source: Path | None = None,
    ) -> Path:
        """Rename a replica to the name that Kafka uses for retired replicas. The rename is
        immediate and atomic.

        Returns the new path. Call `sync` to make the rename durable, and `purge` to remove deleted
        replicas.

        `unique` (16 bytes) distinguishes topics that have the same name, and is incremented if the
        resulting path exists. `source` is the replica's current directory if its name differs from
        the replica's name.
        """
        number = int.from_bytes(unique)
        while True:
            ending = f"-{topic_partition.partition}.{number:032x}{suffix}"
            # As in Kafka, shorten the topic name if the suffix would make the file name too long.
            target = self.path / (topic_partition.topic[: _MAX_NAME - len(ending)] + ending)
            try:
                self._files.replace(source or self.path_of(topic_partition), target)
            # The directory of an earlier replica with the same name and id may not have been purged
            # yet.
            except OSError as error:
                if error.errno not in (errno.EEXIST, errno.ENOTEMPTY):
                    raise
                number = (number + 1) % _IDS
            else:
                return target

    def sync(self) -> None:
        """Make renames and new files in the directory durable. Raises DirectoryError."""
        try:
            self._files.sync(self.path)
        except OSError as cause:
            raise DirectoryError(self.path, cause) from cause

    def purge(self) -> None:
        """Remove deleted replicas that were set aside, including those from before a crash. This is
        slow.
        """
        for entry in self._files.list(self.path):
            if entry.is_directory and entry.name.endswith(DELETED_SUFFIX):
                self._files.remove_directory(self.path / entry.name)


def future_name_fits(topic_partition: TopicPartition) -> bool:
    """Return whether the future replica's name is short enough. A replica whose name is too long
    cannot be moved.

    As in Kafka, the name of a future replica is never shortened.
    """
    return len(f"{topic_partition}.{'0' * 32}{_FUTURE_SUFFIX}") <= _MAX_NAME


def _make_directory(files: Files, path: Path) -> None:
    """Create the directory and its parents durably. If they were lost, all flushed data in them
    would be lost, too.
    """
    missing = []
    for each in (path, *path.parents):
        try:
            files.modified_ms(each)
            break
        except FileNotFoundError:
            missing.append(each)
    files.make_directory(path)
    for each in missing:
        files.sync(each.parent)
