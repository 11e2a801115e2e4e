"""Writes one copy of the metadata, which is a journal and its snapshot in a directory.

When frames are appended, they overwrite the seal at the end of the journal; when all of them are on
disk, a new seal is written. A snapshot replaces the previous snapshot atomically, and only then is
the journal emptied. In between, the journal contains commits that are also in the snapshot, and
readers skip them.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from barnabas.cluster.journal_copies import JOURNAL_NAME, SNAPSHOT_NAME, Copy
from barnabas.cluster.journal_disk import JournalDisk, LockedFile
from barnabas.cluster.journal_frames import Frame, frame, seal
from barnabas.errors import ConfigError

_DAMAGED, _TORN = ".damaged", ".torn"
_TEMPORARY = ".tmp"


class JournalFile:
    """A copy that is locked from `lock` to `close`. Reading does not require the lock.

    Two processes never write to the same copy, even if their log directories differ.
    """

    __slots__ = ("_disk", "_file", "_is_sealed", "directory", "size_bytes")

    def __init__(self, directory: Path, disk: JournalDisk) -> None:
        """Open the journal, or create it, and lock it.

        Raises OSError, or ConfigError if another process has locked it.
        """
        self._disk = disk
        self.directory = directory
        self.size_bytes = 0
        self._is_sealed = False
        self._file = self._open_locked(directory / JOURNAL_NAME)

    @property
    def path(self) -> Path:
        return self.directory / JOURNAL_NAME

    def read(self) -> bytes:
        return self._file.read()

    def append_after(self, copy: Copy, proven_zxid: int) -> int:
        """Prepare for appending after the last commit.

        Commits after `proven_zxid` are written again, and are on disk once the next `sync` has
        returned. If an earlier sync failed, the file still shows them, but the kernel considers
        them written, so a sync alone would succeed without them.

        Returns the number of torn bytes that were cut off.
        """
        commits = [each for each in copy.frames.whole if not each.is_seal]
        # left over from the journal that the snapshot replaced
        is_rest = copy.frames.damaged_at is not None
        self.size_bytes = commits[-1].end if commits and not is_rest else 0
        content = copy.journal or b""
        torn = content[copy.frames.end :] if not is_rest else b""
        if torn:
            # This is probably a commit that was interrupted by a crash.
            kept = self.path.with_name(self.path.name + _TORN)
            self._disk.write(kept, torn, sync=False)
            self._file.truncate(copy.frames.end)
        proven = max((each.end for each in commits if each.zxid <= proven_zxid), default=0)
        if proven < self.size_bytes:
            self._file.write(proven, content[proven : self.size_bytes])
        return len(torn)

    def rewrite(self, snapshot: bytes | None, frames: Sequence[Frame]) -> None:
        """Replace both files with this snapshot and these commits.

        The change is atomic and durable.
        """
        temporary = self.path.with_name(self.path.name + _TEMPORARY)
        self._disk.remove(temporary)
        # Lock the file before it gets its final name, so that no other process can lock it first.
        file = self._open_locked(temporary)
        try:
            content = b"".join(frame(each.payload, each.unsynced) for each in frames)
            file.write(0, content)
            file.sync()
            # The existing snapshot is damaged, but the commits contain the whole tree.
            if snapshot is None:
                self._disk.remove(self.directory / SNAPSHOT_NAME)
            else:
                self._write_snapshot(snapshot)
            self._disk.replace(temporary, self.path)
            self.sync_names()
        except BaseException:
            file.close()
            raise
        self._file.close()
        self._file, self.size_bytes, self._is_sealed = file, len(content), False

    def append(self, whole: bytes) -> None:
        """Append a frame. The frame is on disk once a `sync` that begins later has returned."""
        self._file.write(self.size_bytes, whole)
        self.size_bytes += len(whole)
        self._is_sealed = False

    def seal(self, zxid: int) -> None:
        """Record that every commit up to this one is on disk and that nothing follows it."""
        if not self._is_sealed:
            self._file.write(self.size_bytes, seal(zxid))
            self._is_sealed = True

    def sync(self) -> None:
        """Force the appended frames to disk. This releases the GIL, so it can run in a thread."""
        self._file.sync()

    def replace(self, snapshot: bytes, zxid: int) -> None:
        """Replace the journal with a snapshot of the whole tree after this commit."""
        self._write_snapshot(snapshot)
        self.sync_names()
        # The journal is never empty. If it still contains old frames, they are in the snapshot as
        # well.
        whole = seal(zxid)
        self._file.write(0, whole)
        self._file.truncate(len(whole))
        self.size_bytes, self._is_sealed = 0, True

    def sync_names(self) -> None:
        """Force the names of both files to disk."""
        self._disk.sync_directory(self.directory)

    def keep_damaged(self) -> list[Path]:
        """Copy both files unchanged under names that are never read, and return the new paths."""
        kept = []
        for path in (self.path, self.directory / SNAPSHOT_NAME):
            content = self._disk.read(path)
            if content:
                target = self._free_name(path)
                self._disk.write(target, content)
                kept.append(target)
        return kept

    def close(self) -> None:
        self._file.close()

    def _write_snapshot(self, snapshot: bytes) -> None:
        temporary = self.directory / f"{SNAPSHOT_NAME}{_TEMPORARY}"
        self._disk.write(temporary, frame(snapshot))
        self._disk.replace(temporary, self.directory / SNAPSHOT_NAME)

    def _open_locked(self, path: Path) -> LockedFile:
        try:
            return self._disk.open_locked(path)
        except BlockingIOError:
            raise ConfigError(
                f"the metadata in {self.directory} is in use: stop the broker that uses it"
            ) from None

    def _free_name(self, path: Path) -> Path:
        number = 1
        while True:
            suffix = _DAMAGED + (f"-{number}" if number > 1 else "")
            target = path.with_name(path.name + suffix)
            if self._disk.read(target) is None:
                return target
            number += 1
