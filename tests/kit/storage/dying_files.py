"""A disk at whose n-th change the process dies."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from barnabas.storage.files import Bytes, File
from tests.kit.storage.disk import QuickFiles


class Killed(BaseException):
    """Not an Exception: no code may handle it."""


class DyingFiles(QuickFiles):
    """Lets `left` changes happen."""

    __slots__ = ("changes", "left")

    def __init__(self, left: int) -> None:
        self.left = left
        self.changes = 0

    def _change(self) -> None:
        if self.changes == self.left:
            raise Killed
        self.changes += 1

    def open(self, path: Path, *, create: bool = False) -> File:
        if create and not path.exists():
            self._change()
        return _DyingFile(self, super().open(path, create=create))

    def write(self, path: Path, data: bytes, *, sync: bool = False) -> None:
        self._change()
        super().write(path, b"")
        self._change()
        super().write(path, data)

    def replace(self, source: Path, target: Path) -> None:
        self._change()
        super().replace(source, target)

    def remove(self, path: Path) -> None:
        if path.exists():
            self._change()
            super().remove(path)

    def make_directory(self, path: Path) -> None:
        if not path.exists():
            self._change()
            super().make_directory(path)

    def remove_directory(self, path: Path) -> None:
        for entry in self.list(path):
            self.remove(path / entry.name)
        self._change()
        super().remove_directory(path)


class _DyingFile:
    def __init__(self, disk: DyingFiles, file: File) -> None:
        self._disk = disk
        self._file = file
        self.acquire, self.release, self.fileno = file.acquire, file.release, file.fileno
        self.size, self.pread = file.size, file.pread
        self.is_cached, self.warm = file.is_cached, file.warm

    def write(self, position: int, data: Bytes) -> None:
        self._disk._change()
        half = len(data) // 2
        self._file.write(position, memoryview(data)[:half])
        self._disk._change()
        self._file.write(position + half, memoryview(data)[half:])

    def writev(self, position: int, buffers: Sequence[Bytes]) -> None:
        self.write(position, b"".join(buffers))

    def truncate(self, size: int) -> None:
        self._disk._change()
        self._file.truncate(size)
