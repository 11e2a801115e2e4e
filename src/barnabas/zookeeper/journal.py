"""Keeps the transactions of the ZooKeeper server on disk: a journal, and a snapshot of its start.

    zookeeper.journal      frames of `cluster.journal_frames`, one per batch, and a seal at the end
    zookeeper.snapshot     one frame: the whole state as of some transaction
    zookeeper.stopped      a seal: the last transaction when the server was last stopped cleanly

A batch is written and synced before the next one is written, so a crash can leave at most one torn
batch, at the end; it was never acknowledged, and is cut off. Anything else that cannot be read was
damaged by something other than a crash, and the journal is not opened. After each sync, a seal
records that nothing is missing before it; the next batch overwrites the seal.

A file that was cut within a batch looks like a file whose last batch is torn. After a clean stop, a
third file tells them apart: the transactions up to its number were on disk. Because this remains
true, the file need not be removed at the next start.
"""

from __future__ import annotations

import logging
from pathlib import Path

from barnabas.cluster.journal_disk import OS_DISK, JournalDisk, LockedFile
from barnabas.cluster.journal_frames import Frames, frame, read_frames, seal, zxid_of
from barnabas.counted import counted
from barnabas.errors import ConfigError, CorruptData
from barnabas.zookeeper.sessions import Sessions
from barnabas.zookeeper.transactions import replay, restore
from barnabas.zookeeper.tree import Tree

JOURNAL_NAME, SNAPSHOT_NAME = "zookeeper.journal", "zookeeper.snapshot"
STOPPED_NAME = "zookeeper.stopped"

_log = logging.getLogger(__name__)


class Journal:
    """The files of a data directory, locked and open for appending.

    `append` and `replace` block, so they are called in a thread, but never at the same time.
    """

    __slots__ = (
        *("_disk", "_file", "_snapshot", "_stopped_zxid", "batches", "directory", "sealed_zxid"),
        *("size_bytes", "snapshot_size", "synced_zxid"),
    )

    def __init__(self, directory: Path, disk: JournalDisk = OS_DISK) -> None:
        """Read the files, or create them.

        Raises OSError, ConfigError if another process uses them, or CorruptData.
        """
        self._disk = disk
        self.directory = directory
        self.batches: list[bytes] = []
        try:
            self._file: LockedFile = disk.open_locked(self.path)
        except BlockingIOError:
            raise ConfigError(
                f"{directory} is in use by another ZooKeeper server: stop it, or choose another "
                "dataDir"
            ) from None
        try:
            for name in (SNAPSHOT_NAME, STOPPED_NAME):
                disk.remove(directory / f"{name}.tmp")
            self._snapshot = self._read_single(SNAPSHOT_NAME)
            self.snapshot_size = len(self._snapshot or b"")
            stopped = self._read_single(STOPPED_NAME)
            self._stopped_zxid = 0 if stopped is None else zxid_of(stopped)
            self._read_batches()
            self._file.sync()  # the process that wrote the last batch may have been killed
            disk.sync_directory(directory)
        except BaseException:
            self._file.close()
            raise

    @property
    def path(self) -> Path:
        return self.directory / JOURNAL_NAME

    def load(self, tree: Tree, sessions: Sessions) -> None:
        """Fill a new tree and new sessions with what was read. Raises CorruptData."""
        try:
            if self._snapshot is not None:
                restore(self._snapshot, tree, sessions)
            for batch in self.batches:
                replay(batch, tree, sessions)
            if tree.zxid < self.sealed_zxid:
                raise CorruptData(f"the transactions up to {self.sealed_zxid} are missing")
        except CorruptData as error:
            self.close()
            raise self.damage(str(error)) from None
        self._snapshot, self.batches = None, []

    def append(self, batch: bytes) -> None:
        """Write a batch, and wait until it is on disk. Raises OSError."""
        whole = frame(batch)
        self._file.write(self.size_bytes, whole)
        self._file.sync()
        self.size_bytes += len(whole)
        self.synced_zxid = zxid_of(batch)
        self._file.write(self.size_bytes, seal(self.synced_zxid))

    def replace(self, snapshot: bytes) -> None:
        """Replace the batches with a snapshot of the whole state after them. Raises OSError."""
        self._write_single(SNAPSHOT_NAME, frame(snapshot))
        self.snapshot_size = len(snapshot)
        self._begin(zxid_of(snapshot))

    def stop(self) -> None:
        """Record what the files contain, and close them."""
        try:
            if self.synced_zxid > self._stopped_zxid:
                self._write_single(STOPPED_NAME, seal(self.synced_zxid))
        except OSError as error:  # nothing is lost, but damage might not be noticed
            _log.warning("cannot write %s: %s", self.directory / STOPPED_NAME, error)
        finally:
            self.close()

    def close(self) -> None:
        self._file.close()

    def damage(self, reason: str) -> CorruptData:
        """Return the error that stops the start, with what the operator can do."""
        return CorruptData(
            f"{self.directory}: {reason}; nothing was changed. Restore {JOURNAL_NAME}, "
            f"{SNAPSHOT_NAME} and {STOPPED_NAME} from one backup, or move all of them away to "
            "begin with an empty tree"
        )

    def _begin(self, zxid: int) -> None:
        """Empty the journal. It contains at least a seal, so that its loss is noticed."""
        whole = seal(zxid)
        self._file.write(0, whole)
        self._file.truncate(len(whole))
        self.size_bytes = 0

    def _write_single(self, name: str, whole: bytes) -> None:
        """Replace a file as a whole, so that a crash leaves either the old one or the new one."""
        temporary = self.directory / f"{name}.tmp"
        self._disk.write(temporary, whole)
        self._disk.replace(temporary, self.directory / name)
        self._disk.sync_directory(self.directory)

    def _read_single(self, name: str) -> bytes | None:
        """Return the payload of a file that consists of one frame, or None if there is no file."""
        content = self._disk.read(self.directory / name)
        if content is None:
            return None
        found = read_frames(content)
        if len(found.whole) != 1 or found.damaged_at is not None or found.end != len(content):
            raise self.damage(f"{name} is damaged")
        return found.whole[0].payload

    def _read_batches(self) -> None:
        content = self._file.read()
        snapshot_zxid = 0 if self._snapshot is None else zxid_of(self._snapshot)
        found = read_frames(content)
        if not content and self._snapshot is not None:
            raise self.damage(f"{JOURNAL_NAME} is missing or empty")
        newest_zxid = max((each.zxid for each in found.whole), default=snapshot_zxid)
        self.sealed_zxid = max(newest_zxid, self._stopped_zxid)
        """The last transaction that the files must contain."""
        batches = [each for each in found.whole if not each.is_seal]
        self.batches = [each.payload for each in batches if each.zxid > snapshot_zxid]
        # If a crash interrupted `_begin`, what follows the seal is in the snapshot already.
        if found.damaged_at is not None and newest_zxid > snapshot_zxid:
            raise self.damage(f"{JOURNAL_NAME} is damaged at byte {found.damaged_at}")
        self.synced_zxid = batches[-1].zxid if self.batches else snapshot_zxid
        """The last transaction that is on disk."""
        if self.sealed_zxid > self.synced_zxid:
            raise self.damage(f"the transactions up to {self.sealed_zxid} are missing")
        if not self.batches:
            self._begin(snapshot_zxid)
            return
        self.size_bytes = batches[-1].end
        self._cut(content, found)
        if not found.whole[-1].is_seal:
            self._write_last_again(content, found)

    def _write_last_again(self, content: bytes, found: Frames) -> None:
        """Write the last batch again, which is synced before anybody sees it.

        If its sync has failed, the file shows it, but the kernel will not write it: a sync would
        succeed without it.
        """
        start = found.whole[-2].end if len(found.whole) > 1 else 0
        self._file.write(start, content[start : found.whole[-1].end])

    def _cut(self, content: bytes, found: Frames) -> None:
        torn = len(content) - found.end
        if torn:
            _log.warning(
                "%s: truncated %s of an incomplete transaction at the end",
                self.path,
                counted(torn, "byte"),
            )
            self._file.truncate(found.end)
