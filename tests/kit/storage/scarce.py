"""A process that has no file descriptor left, for one call or for as long as a test wants."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

from barnabas.storage.files import Entry, File
from barnabas.storage.log import Log
from tests.kit.storage.disk import QuickFiles


class ScarceFiles(QuickFiles):
    """Counts the calls that need a descriptor."""

    __slots__ = ("calls", "has_none", "number", "refused", "refused_call")

    def __init__(self, number: int = errno.EMFILE) -> None:
        self.number = number
        """What the system says: this process has no more (EMFILE), or the machine (ENFILE)."""
        self.calls = 0
        self.refused_call = -1
        """The number of the one that is refused; -1: none."""
        self.has_none = False
        """Each one is refused."""
        self.refused = 0

    def open(self, path: Path, *, create: bool = False) -> File:
        self._need(path)
        return super().open(path, create=create)

    def read(self, path: Path) -> bytes:
        self._need(path)
        return super().read(path)

    def write(self, path: Path, data: bytes, *, sync: bool = False) -> None:
        self._need(path)
        super().write(path, data, sync=sync)

    def list(self, path: Path) -> list[Entry]:
        self._need(path)
        return super().list(path)

    def sync(self, path: Path) -> None:
        self._need(path)
        super().sync(path)

    def _need(self, path: Path) -> None:
        number = self.calls
        self.calls += 1
        if self.has_none or number == self.refused_call:
            self.refused += 1
            raise OSError(self.number, os.strerror(self.number), str(path))


def without_descriptors(log: Log) -> ScarceFiles:
    """What the last segment of a log is on from now on, and it has no file open."""
    files = ScarceFiles()
    files.has_none = True
    log.release()
    log.segments[-1]._files = files
    return files


def at_each_call() -> Iterator[ScarceFiles]:
    """Disks that refuse the first call, the second one, and so on; as long as that one comes."""
    number = 0
    while True:
        files = ScarceFiles()
        files.refused_call = number
        yield files
        if not files.refused:
            assert number, "nothing needs a descriptor"
            return
        number += 1
