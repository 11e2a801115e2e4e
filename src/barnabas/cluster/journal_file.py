"""One copy of the metadata, open for appending: a journal and its snapshot in a directory.

Frames are appended over the seal at the journal's end; when all of them are on disk the next seal
follows. The snapshot replaces its predecessor atomically and before the journal is emptied, so for
a moment the journal holds commits that the snapshot has: a reader skips those.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from barnabas.cluster.journal_copies import JOURNAL_NAME, SNAPSHOT_NAME, Copy
from barnabas.cluster.journal_frames import Frame, frame, seal
from barnabas.disk_sync import sync_descriptor
from barnabas.errors import ConfigError

_OWNER_ONLY = 0o600
_DAMAGED, _TORN = ".damaged", ".torn"
_TEMPORARY = ".tmp"


class JournalFile:
    """Locked from `lock` to `close`: two processes never write one copy, regardless of log
    directories. Reading needs no lock."""

    __slots__ = ("_fd", "_is_sealed", "directory", "size_bytes")

    def __init__(self, directory: Path) -> None:
        """Create or open the journal and lock it. OSError; ConfigError if another has it."""
        self.directory = directory
        self.size_bytes = 0
        self._is_sealed = False
        self._fd = _open_locked(directory / JOURNAL_NAME, directory)

    @property
    def path(self) -> Path:
        return self.directory / JOURNAL_NAME

    def read(self) -> bytes:
        size_bytes = os.fstat(self._fd).st_size
        parts: list[bytes] = []
        position = 0
        while position < size_bytes:
            part = os.pread(self._fd, size_bytes - position, position)
            if not part:
                break
            parts.append(part)
            position += len(part)
        return b"".join(parts)

    def go_on(self, copy: Copy) -> int:
        """Append behind the last commit from now on; returns how many torn bytes were cut."""
        commits = [each for each in copy.frames.whole if not each.is_seal]
        is_rest = copy.frames.damaged_at is not None  # of a journal that the snapshot has replaced
        self.size_bytes = commits[-1].end if commits and not is_rest else 0
        content = copy.journal or b""
        torn = content[copy.frames.end :] if not is_rest else b""
        if torn:
            # A part of a commit that a crash interrupted, as far as anyone can know.
            _write(self.path.with_name(self.path.name + _TORN), torn, sync=False)
            os.ftruncate(self._fd, copy.frames.end)
        return len(torn)

    def rewrite(self, snapshot: bytes | None, frames: Sequence[Frame]) -> None:
        """Have this snapshot and these commits, and nothing else; atomic, and durable."""
        temporary = self.path.with_name(self.path.name + _TEMPORARY)
        temporary.unlink(missing_ok=True)
        fd = _open_locked(temporary, self.directory)
        try:
            content = b"".join(frame(each.payload, each.unsynced) for each in frames)
            _pwrite_all(fd, content, 0)
            sync_descriptor(fd)
            if snapshot is None:
                (self.directory / SNAPSHOT_NAME).unlink(missing_ok=True)
            else:
                self._write_snapshot(snapshot)
            temporary.replace(self.path)
            sync_directory(self.directory)
        except BaseException:
            os.close(fd)
            raise
        os.close(self._fd)
        self._fd, self.size_bytes, self._is_sealed = fd, len(content), False

    def append(self, whole: bytes) -> None:
        """Write a frame; it is on disk once a `sync` that begins later has returned."""
        _pwrite_all(self._fd, whole, self.size_bytes)
        self.size_bytes += len(whole)
        self._is_sealed = False

    def seal(self, zxid: int) -> None:
        """Note that all commits up to this one are on disk, and nothing else follows."""
        if not self._is_sealed:
            _pwrite_all(self._fd, seal(zxid), self.size_bytes)
            self._is_sealed = True

    def sync(self) -> None:
        """Force what was appended to disk. Releases the GIL, so it suits a thread."""
        sync_descriptor(self._fd)

    def replace(self, snapshot: bytes, zxid: int) -> None:
        """Replace the journal by a snapshot of the whole tree, as of this commit."""
        self._write_snapshot(snapshot)
        sync_directory(self.directory)
        # Never empty: what is left of the old frames says nothing that the snapshot does not.
        whole = seal(zxid)
        _pwrite_all(self._fd, whole, 0)
        os.ftruncate(self._fd, len(whole))
        self.size_bytes, self._is_sealed = 0, True

    def keep_damaged(self) -> list[Path]:
        """Copy both files as they are, under names that nothing reads; returns the copies."""
        kept = []
        for path in (self.path, self.directory / SNAPSHOT_NAME):
            if path.exists() and path.stat().st_size:
                target = _free_name(path)
                _write(target, path.read_bytes())
                kept.append(target)
        return kept

    def close(self) -> None:
        os.close(self._fd)

    def _write_snapshot(self, snapshot: bytes) -> None:
        temporary = self.directory / f"{SNAPSHOT_NAME}{_TEMPORARY}"
        _write(temporary, frame(snapshot))
        temporary.replace(self.directory / SNAPSHOT_NAME)


def sync_directory(directory: Path) -> None:
    fd = os.open(directory, os.O_RDONLY)
    try:
        sync_descriptor(fd)
    finally:
        os.close(fd)


def _open_locked(path: Path, directory: Path) -> int:
    """Open a file and lock it, per open file: that excludes a second store in one process, too."""
    import fcntl  # not on Windows

    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _OWNER_ONLY)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not os.path.samestat(os.fstat(fd), path.stat()):
            raise BlockingIOError  # its owner has just written it again
    except BlockingIOError:
        os.close(fd)
        raise ConfigError(
            f"the metadata in {directory} is in use: stop the broker that runs on it, or read it "
            "without writing"
        ) from None
    except BaseException:
        os.close(fd)
        raise
    return fd


def _free_name(path: Path) -> Path:
    number = 1
    while True:
        target = path.with_name(f"{path.name}{_DAMAGED}" + (f"-{number}" if number > 1 else ""))
        if not target.exists():
            return target
        number += 1


def _write(path: Path, data: bytes, *, sync: bool = True) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, _OWNER_ONLY)
    try:
        _pwrite_all(fd, data, 0)
        if sync:
            sync_descriptor(fd)
    finally:
        os.close(fd)


def _pwrite_all(fd: int, data: bytes, position: int) -> None:
    """Write all of it, though one call may write less."""
    left = memoryview(data)
    while left:
        written = os.pwrite(fd, left, position)
        position += written
        left = left[written:]
