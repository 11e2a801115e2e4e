"""Makes all operating-system calls that access data files.

The calls include complete writes, fsync of files and directories, and locks on log directories. No
other code calls `os` to access data. To simulate a disk with torn writes and lost pages, a test
therefore only has to replace `OsFiles`.

As on a real disk, data that was written before `sync` has returned may be lost in a power failure,
and the writes may reach the disk in any order.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from struct import pack
from typing import Protocol

from barnabas.disk_sync import sync_descriptor
from barnabas.named_tuple import NamedTuple
from barnabas.types import SharedFile

Bytes = bytes | bytearray | memoryview

_IOV_MAX = 1024  # on both Linux and macOS
_READ_AHEAD_BYTES = 128 * 1024  # Linux's default


class Entry(NamedTuple):
    """Describes an entry in a directory."""

    name: str
    is_directory: bool
    size_bytes: int


class Space(NamedTuple):
    """The total and the free space of a volume."""

    total_bytes: int
    usable_bytes: int


class File(SharedFile, Protocol):
    """Represents an open file. The code that opens it holds one reference, which it drops by
    calling `release`.
    """

    def write(self, position: int, data: Bytes) -> None:
        """Write all of `data` at `position`. If this raises OSError, any part of the data may have
        been written.
        """
        ...

    def writev(self, position: int, buffers: Sequence[Bytes]) -> None:
        """Write all buffers one after another, starting at `position`. Errors are the same as in
        `write`.
        """
        ...

    def truncate(self, size: int) -> None: ...

    def size(self) -> int: ...

    def is_cached(self, position: int, size: int) -> bool:
        """Return whether these bytes can probably be read without having to wait for the disk."""
        ...

    def warm(self, position: int, size: int) -> None:
        """Read these bytes into the page cache. This is slow and may run in a thread."""
        ...


class Lock(Protocol):
    """Represents a lock that is held until `release` is called or the process exits."""

    def release(self) -> None: ...


class Files(Protocol):
    """The interface to the disk. All methods may raise OSError."""

    def open(self, path: Path, *, create: bool = False) -> File: ...

    def read(self, path: Path) -> bytes:
        """Read the content of a small file. Raises FileNotFoundError if the file does not exist."""
        ...

    def write(self, path: Path, data: bytes, *, sync: bool = False) -> None:
        """Write a small file. The write is not atomic. With `sync`, the content is durable, but the
        file name may not be.
        """
        ...

    def replace(self, source: Path, target: Path) -> None:
        """Rename a file or directory atomically. If `target` exists, it is replaced."""
        ...

    def remove(self, path: Path) -> None:
        """Remove the file if it exists."""
        ...

    def make_directory(self, path: Path) -> None:
        """Create a directory that only its owner can access. Any missing parent directories are
        created, too.
        """
        ...

    def remove_directory(self, path: Path) -> None:
        """Remove a directory and everything in it."""
        ...

    def list(self, path: Path) -> list[Entry]:
        """List the entries of a directory in the order of their names."""
        ...

    def modified_ms(self, path: Path) -> int:
        """Return the time (ms) at which a file was last modified."""
        ...

    def permissions(self, path: Path) -> int:
        """Return the nine permission bits, which determine who may read, write and execute the
        file.
        """
        ...

    def space(self, path: Path) -> Space:
        """Return the total and the free space of the volume that contains `path`."""
        ...

    def sync(self, path: Path) -> None:
        """Make the content of a file or the entries of a directory durable."""
        ...

    def lock(self, path: Path) -> Lock:
        """Lock a file exclusively. Raises BlockingIOError if another process has locked it."""
        ...


class OsFile:
    """A reference-counted open file of the operating system."""

    __slots__ = ("_descriptor", "_holders")

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._holders = 1

    def acquire(self) -> None:
        assert self._holders > 0, "the file is closed"
        self._holders += 1

    def release(self) -> None:
        assert self._holders > 0, "released more often than acquired"
        self._holders -= 1
        if self._holders == 0:
            os.close(self._descriptor)

    def __del__(self) -> None:
        # A missing call of `release` is a bug, but it must not exhaust the file descriptors.
        if self._holders > 0:
            self._holders = 0
            os.close(self._descriptor)

    def fileno(self) -> int:
        return self._descriptor

    def pread(self, size: int, position: int) -> bytes:
        return os.pread(self._descriptor, size, position)

    def write(self, position: int, data: Bytes) -> None:
        written = os.pwrite(self._descriptor, data, position)
        if written != len(data):
            # Either the write was interrupted or the disk is nearly full. The next call shows which
            # of the two it was.
            rest = memoryview(data)[written:]
            while rest:
                position += written
                written = os.pwrite(self._descriptor, rest, position)
                rest = rest[written:]

    def writev(self, position: int, buffers: Sequence[Bytes]) -> None:
        for first in range(0, len(buffers), _IOV_MAX):
            some = buffers[first : first + _IOV_MAX]
            size = sum(map(len, some))
            if not hasattr(os, "pwritev"):  # macOS before 11
                self.write(position, b"".join(some))
                position += size
                continue
            written = os.pwritev(self._descriptor, some, position)
            # The disk is full, or a signal arrived. `write` writes the rest or raises the error.
            if written != size:
                self.write(position + written, b"".join(some)[written:])
            position += size

    def truncate(self, size: int) -> None:
        os.ftruncate(self._descriptor, size)

    def size(self) -> int:
        return os.fstat(self._descriptor).st_size

    def is_cached(self, position: int, size: int) -> bool:
        if not hasattr(os, "RWF_NOWAIT"):
            return True  # only Linux can report this
        probe = bytearray(1)
        # The kernel reads ahead and evicts pages in units that are larger than a page.
        ends = (*range(position, position + size, _READ_AHEAD_BYTES), position + size - 1)
        try:
            for each in ends:
                # This takes less than a microsecond if the page is cached, and fails with EAGAIN if
                # it is not.
                os.preadv(self._descriptor, (probe,), each, os.RWF_NOWAIT)
        except BlockingIOError:
            return False
        except OSError as error:
            if error.errno == errno.EOPNOTSUPP:
                return True  # this file system cannot report it
            raise
        return True

    def warm(self, position: int, size: int) -> None:
        # preadv allows reusing one small buffer, and releases the GIL during each call.
        buffer = memoryview(bytearray(min(size, _READ_AHEAD_BYTES)))
        end = position + size
        while position < end:
            part = buffer[: end - position]
            if hasattr(os, "preadv"):  # not on macOS before 11
                read = os.preadv(self._descriptor, (part,), position)
            else:
                read = len(os.pread(self._descriptor, len(part), position))
            # The file has been truncated. The code that reads it will notice that.
            if read == 0:
                return
            position += read


def open_descriptor(path: Path, create: bool) -> int:
    """Open a file for reading and writing, and return its descriptor. Raises OSError."""
    flags = os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0)
    return os.open(path, flags, 0o644)


class OsFiles:
    """Accesses the disk of this machine through the operating system."""

    __slots__ = ()

    def open(self, path: Path, *, create: bool = False) -> File:
        return OsFile(open_descriptor(path, create))

    def read(self, path: Path) -> bytes:
        return path.read_bytes()

    def write(self, path: Path, data: bytes, *, sync: bool = False) -> None:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
        try:
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(descriptor, rest) :]
            if sync:
                sync_descriptor(descriptor)
        finally:
            os.close(descriptor)

    def replace(self, source: Path, target: Path) -> None:
        os.replace(source, target)

    def remove(self, path: Path) -> None:
        path.unlink(missing_ok=True)

    def make_directory(self, path: Path) -> None:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)

    def remove_directory(self, path: Path) -> None:
        for entry in self.list(path):
            if entry.is_directory:
                self.remove_directory(path / entry.name)
            else:
                self.remove(path / entry.name)
        path.rmdir()

    def list(self, path: Path) -> list[Entry]:
        with os.scandir(path) as entries:
            found = []
            for entry in entries:
                try:
                    is_directory = entry.is_dir()
                    size = 0 if is_directory else entry.stat().st_size
                except FileNotFoundError:
                    continue  # a checkpoint's temporary name, which a thread has just renamed
                found.append(Entry(entry.name, is_directory, size))
        return sorted(found)

    def modified_ms(self, path: Path) -> int:
        return os.stat(path).st_mtime_ns // 1_000_000

    def permissions(self, path: Path) -> int:
        return os.stat(path).st_mode & 0o777

    def space(self, path: Path) -> Space:
        found = os.statvfs(path)
        return Space(found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize)

    def sync(self, path: Path) -> None:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            sync_descriptor(descriptor)
        finally:
            os.close(descriptor)

    def lock(self, path: Path) -> Lock:
        descriptor = -1
        try:
            if not _locks_open_files() and _is_open_here(path):
                raise BlockingIOError(errno.EAGAIN, "locked by this process", str(path))
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            _lock(descriptor)
        except OSError as cause:
            if descriptor >= 0:
                os.close(descriptor)
            # If the file is already locked, the error code depends on the operating system.
            if cause.errno in (errno.EACCES, errno.EAGAIN) and descriptor >= 0:
                raise BlockingIOError(
                    cause.errno, "locked by another process", str(path)
                ) from cause
            raise
        return _OsLock(descriptor)


class _OsLock:
    """Represents a locked file descriptor. Closing it releases the lock."""

    __slots__ = ("_descriptor",)

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def release(self) -> None:
        os.close(self._descriptor)


def _lock(descriptor: int) -> None:
    """Lock the whole file for writing. The lock conflicts with a `FileChannel.tryLock` in a JVM.

    The JVM uses POSIX record locks, which belong to a process. A second broker in the same process
    would therefore get the lock as well, and closing any descriptor of the file would release it.
    Linux also has locks that belong to an open file. They conflict with each other and with POSIX
    locks, so they are used on Linux. On other systems, `_is_open_here` is called before locking.
    """
    import fcntl

    if _locks_open_files():
        whole_file = pack("hhqqi", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, whole_file)
    else:
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _locks_open_files() -> bool:
    """Return whether the system supports locks that belong to an open file. Only Linux does."""
    import fcntl

    return sys.platform == "linux" and hasattr(fcntl, "F_OFD_SETLK")


def _is_open_here(path: Path) -> bool:
    """Return whether this process has already opened the file and therefore holds the lock.

    If so, the file must not be opened again, because closing the second descriptor would release
    the lock.
    """
    try:
        wanted = os.stat(path)
    except FileNotFoundError:
        return False
    for name in os.listdir("/dev/fd"):
        try:
            if os.path.samestat(os.fstat(int(name)), wanted):
                return True
        except OSError:
            continue  # the descriptor that listed them is closed
    return False
