"""Provides the machine's disk, on which a test can set a function to run before writes and syncs.

The function also applies to open files. While none is set, a write costs one extra check.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from barnabas.storage.files import Bytes, File, OsFile, OsFiles, Space, open_descriptor

Before = Callable[[Path], None]
"""Called with the path to write or sync. It may block or raise OSError."""


class InterposedFiles(OsFiles):
    """`before` is called before each write and sync, if set; `is_full` makes `space` report a full
    disk.

    Both may be set while the files are in use, in any thread.
    """

    __slots__ = ("_files", "before", "is_full")

    def __init__(self, files: OsFiles) -> None:
        """`files` writes small files and syncs."""
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
