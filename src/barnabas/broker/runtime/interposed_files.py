"""Provides the machine's disk. Tests can set a function that is called before writes and syncs.

The function is also called for files that are already open. If it is not set, a write costs only
one additional check.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from barnabas.storage.files import Bytes, File, OsFile, OsFiles, Space, open_descriptor

Before = Callable[[Path], None]
"""Called with the path that is about to be written or synced. May block or raise OSError."""


class InterposedFiles(OsFiles):
    """Calls `before`, if it is set, before each write and sync. If `is_full` is set, `space`
    reports that the disk is full.

    Both can be set in any thread, even while the files are in use.
    """

    __slots__ = ("_files", "before", "is_full")

    def __init__(self, files: OsFiles) -> None:
        """`files` is used to write small files and to sync."""
        self._files = files
        self.before: Before | None = None
        self.is_full = False

    def open(self, path: Path, *, create: bool = False) -> File:
        if create:
            self._write_to(path)
        return _InterposedFile(open_descriptor(path, create), self, path)

    def write(self, path: Path, data: bytes, *, sync: bool = False) -> None:
        self._write_to(path)
        self._files.write(path, data, sync=sync)

    def make_directory(self, path: Path) -> None:
        self._write_to(path)
        super().make_directory(path)

    def sync(self, path: Path) -> None:
        self._write_to(path)
        self._files.sync(path)

    def space(self, path: Path) -> Space:
        found = super().space(path)
        return found._replace(usable_bytes=0) if self.is_full else found

    def _write_to(self, path: Path) -> None:
        if self.before is not None:
            self.before(path)


class _InterposedFile(OsFile):
    __slots__ = ("_files", "_path")

    def __init__(self, descriptor: int, files: InterposedFiles, path: Path) -> None:
        super().__init__(descriptor)
        self._files = files
        self._path = path

    def write(self, position: int, data: Bytes) -> None:
        if self._files.before is not None:
            self._files.before(self._path)
        OsFile.write(self, position, data)

    def writev(self, position: int, buffers: Sequence[Bytes]) -> None:
        if self._files.before is not None:
            self._files.before(self._path)
        OsFile.writev(self, position, buffers)
