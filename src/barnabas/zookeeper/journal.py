"""Keeps the transactions of the ZooKeeper server on disk: a journal, and a snapshot of its start.

    zookeeper.journal      frames of `cluster.journal_frames`, one per batch, and a seal at the end
    zookeeper.snapshot     one frame: the whole state as of some transaction

A batch is written and synced before the next one is written, so a crash can leave at most one torn
batch, at the end; it was never acknowledged, and is cut off. Anything else that cannot be read was
damaged by something other than a crash, and the journal is not opened. After each sync, a seal
records that nothing is missing before it; the next batch overwrites the seal.
"""

from __future__ import annotations

import logging
from pathlib import Path

from barnabas.cluster.journal_disk import OS_DISK, JournalDisk, LockedFile
from barnabas.cluster.journal_frames import Frames, frame, read_frames, seal, zxid_of
from barnabas.counted import counted
from barnabas.errors import ConfigError, CorruptData

JOURNAL_NAME, SNAPSHOT_NAME = "zookeeper.journal", "zookeeper.snapshot"

_log = logging.getLogger(__name__)


class Journal:
    """The files of a data directory, locked and open for appending.

    `append` and `replace` block, so they are called in a thread, but never at the same time.
    """

    __slots__ = ("_disk", "_file", "batches", "directory", "sealed_zxid", "size_bytes", "snapshot")

    def __init__(self, directory: Path, disk: JournalDisk = OS_DISK) -> None:
        """Read the files, or create them.

        Raises OSError, ConfigError if another process uses them, or CorruptData.
        """
        self._disk = disk
        self.directory = directory
        try:
            self._file: LockedFile = disk.open_locked(self.path)
        except BlockingIOError:
            raise ConfigError(
                f"{directory} is in use by another ZooKeeper server: stop it, or choose another "
                "dataDir"
            ) from None
        try:
            disk.remove(directory / f"{SNAPSHOT_NAME}.tmp")
            self.snapshot = self._read_snapshot()
            self._read_batches()
            self._file.sync()  # the process that wrote the last batch may have been killed
            disk.sync_directory(directory)
        except BaseException:
            self._file.close()
            raise

    @property
    def path(self) -> Path:
        return self.directory / JOURNAL_NAME

    def append(self, batch: bytes) -> None:
        """Write a batch, and wait until it is on disk. Raises OSError."""
        whole = frame(batch)
        self._file.write(self.size_bytes, whole)
        self._file.sync()
        self.size_bytes += len(whole)
        self._file.write(self.size_bytes, seal(zxid_of(batch)))

    def replace(self, snapshot: bytes) -> None:
        """Replace the batches with a snapshot of the whole state after them. Raises OSError."""
        temporary = self.directory / f"{SNAPSHOT_NAME}.tmp"
        self._disk.write(temporary, frame(snapshot))
        self._disk.replace(temporary, self.directory / SNAPSHOT_NAME)
        self._disk.sync_directory(self.directory)
        self._begin(zxid_of(snapshot))

    def close(self) -> None:
        self._file.close()

    def damage(self, reason: str) -> CorruptData:
        """Return the error that stops the start, with what the operator can do."""
        return CorruptData(
            f"{self.directory}: {reason}; nothing was changed. Restore {JOURNAL_NAME} and "
            f"{SNAPSHOT_NAME} from a backup, or move both away to begin with an empty tree"
        )

    def _begin(self, zxid: int) -> None:
        """Empty the journal. It contains at least a seal, so that its loss is noticed."""
        whole = seal(zxid)
        self._file.write(0, whole)
        self._file.truncate(len(whole))
        self.size_bytes = 0

    def _read_snapshot(self) -> bytes | None:
        content = self._disk.read(self.directory / SNAPSHOT_NAME)
        if content is None:
            return None
        found = read_frames(content)
        # It is replaced as a whole, so a crash leaves either the old one or the new one.
        if len(found.whole) != 1 or found.damaged_at is not None or found.end != len(content):
            raise self.damage(f"{SNAPSHOT_NAME} is damaged")
        return found.whole[0].payload

    def _read_batches(self) -> None:
        content = self._file.read()
        snapshot_zxid = 0 if self.snapshot is None else zxid_of(self.snapshot)
        found = read_frames(content)
        if not content and self.snapshot is not None:
            raise self.damage(f"{JOURNAL_NAME} is missing or empty")
        self.sealed_zxid = max((each.zxid for each in found.whole), default=snapshot_zxid)
        """The last transaction that the files must contain."""
        batches = [each for each in found.whole if not each.is_seal]
        self.batches = [each.payload for each in batches if each.zxid > snapshot_zxid]
        # If a crash interrupted `_begin`, what follows the seal is in the snapshot already.
        if found.damaged_at is not None and self.sealed_zxid > snapshot_zxid:
            raise self.damage(f"{JOURNAL_NAME} is damaged at byte {found.damaged_at}")
        if not self.batches:
            if self.sealed_zxid > snapshot_zxid:
                raise self.damage(f"the transactions up to {self.sealed_zxid} are missing")
            self._begin(snapshot_zxid)
            return
        self.size_bytes = batches[-1].end
        self._cut(content, found)

    def _cut(self, content: bytes, found: Frames) -> None:
        torn = len(content) - found.end
        if torn:
            _log.warning(
                "%s: truncated %s of an incomplete transaction at the end",
                self.path,
                counted(torn, "byte"),
            )
            self._file.truncate(found.end)
