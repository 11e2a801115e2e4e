"""Makes all system calls for the files of the embedded store.

This is the seam between the embedded store and its files; the logs have a seam of their own. The
files can be read only by their owner, because a journal contains password hashes.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Protocol

from barnabas.disk_sync import sync_descriptor

_OWNER_ONLY = 0o600


class LockedFile(Protocol):
    """A file that is open for reading and writing, and that is locked until `close` is called."""

    def read(self) -> bytes:
        """Read the whole file."""
        ...

    def write(self, position: int, data: bytes) -> None:
        """Write all of `data`. If it raises OSError, any part of the data may have been written."""
        ...

    def truncate(self, size: int) -> None: ...

    def sync(self) -> None:
        """Force the written bytes to disk. This releases the GIL, so it can run in a thread."""
        ...

    def close(self) -> None: ...


class JournalDisk(Protocol):
    """The disk that contains a journal. Every method may raise OSError."""

    @property
    def snapshot_at_bytes(self) -> int:
        """The size at which a journal is replaced by a snapshot."""
        ...

    def open_locked(self, path: Path) -> LockedFile:
        """Open a file, which is created if it does not exist.

        Raises BlockingIOError if the file is locked.
        """
        ...

    def read(self, path: Path) -> bytes | None:
        """Return the content of a file, or None if the file does not exist."""
        ...

    def write(self, path: Path, data: bytes, *, sync: bool = True) -> None:
        """Write a whole file. The operation is not atomic."""
        ...

    def replace(self, source: Path, target: Path) -> None: ...

    def remove(self, path: Path) -> None:
        """Remove a file if it exists."""
        ...

    def sync_directory(self, path: Path) -> None:
        """Force the names of a directory's files to disk."""
        ...


class OsLockedFile:
    """A file whose lock also excludes a second store in the same process."""

    __slots__ = ("_fd",)

    def __init__(self, fd: int) -> None:
        self._fd = fd

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

    def write(self, position: int, data: bytes) -> None:
        _pwrite_all(self._fd, data, position)

    def truncate(self, size: int) -> None:
        os.ftruncate(self._fd, size)

    def sync(self) -> None:
        sync_descriptor(self._fd)

    def close(self) -> None:
        os.close(self._fd)


class OsJournalDisk:
    """The disk of the operating system."""

    __slots__ = ()

    snapshot_at_bytes = 1 << 20

    def open_locked(self, path: Path) -> LockedFile:
        import fcntl  # this module does not exist on Windows

        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _OWNER_ONLY)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not os.path.samestat(os.fstat(fd), path.stat()):
                raise BlockingIOError  # the owner of the lock has just replaced the file
        except BaseException:
            os.close(fd)
            raise
        return OsLockedFile(fd)

    def read(self, path: Path) -> bytes | None:
        try:
            return path.read_bytes()
        except FileNotFoundError:
            return None

    def write(self, path: Path, data: bytes, *, sync: bool = True) -> None:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, _OWNER_ONLY)
        try:
            _pwrite_all(fd, data, 0)
            if sync:
                sync_descriptor(fd)
        finally:
            os.close(fd)

    def replace(self, source: Path, target: Path) -> None:
        source.replace(target)

    def remove(self, path: Path) -> None:
        path.unlink(missing_ok=True)

    def sync_directory(self, path: Path) -> None:
        fd = os.open(path, os.O_RDONLY)
        try:
            sync_descriptor(fd)
        finally:
            os.close(fd)


OS_DISK = OsJournalDisk()


def _pwrite_all(fd: int, data: bytes, position: int) -> None:
    """Write all bytes, in several calls if necessary."""
    left = memoryview(data)
    while left:
        written = os.pwrite(fd, left, position)
        position += written
        left = left[written:]
