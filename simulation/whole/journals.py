"""A simulated disk for the metadata of a broker that is alone: the disk of its logs."""

from __future__ import annotations

from pathlib import Path

from barnabas.cluster.journal_disk import LockedFile
from barnabas.storage.files import Lock
from simulation.whole.files import SimFiles


class SimJournals:
    """The journals of one process."""

    __slots__ = ("_files",)

    snapshot_at_bytes = 4_096
    """This is small, so that snapshots are taken during a run."""

    def __init__(self, files: SimFiles) -> None:
        self._files = files

    def open_locked(self, path: Path) -> LockedFile:
        lock = self._files.lock(path)
        try:
            return _LockedFile(self._files, path, lock)
        except OSError:
            lock.release()
            raise

    def read(self, path: Path) -> bytes | None:
        try:
            return self._files.read(path)
        except FileNotFoundError:
            return None

    def write(self, path: Path, data: bytes, *, sync: bool = True) -> None:
        self._files.write(path, data, sync=sync)

    def replace(self, source: Path, target: Path) -> None:
        self._files.replace(source, target)

    def remove(self, path: Path) -> None:
        self._files.remove(path)

    def sync_directory(self, path: Path) -> None:
        self._files.sync(path)


class _LockedFile:
    """A locked file. It keeps its inode when it is renamed, as a descriptor does."""

    __slots__ = ("_file", "_lock")

    def __init__(self, files: SimFiles, path: Path, lock: Lock) -> None:
        self._file = files.open(path, create=True)
        self._lock = lock

    def read(self) -> bytes:
        return self._file.pread(self._file.size(), 0)

    def write(self, position: int, data: bytes) -> None:
        self._file.write(position, data)

    def truncate(self, size: int) -> None:
        self._file.truncate(size)

    def sync(self) -> None:
        self._file.sync()

    def close(self) -> None:
        self._file.release()
        self._lock.release()
