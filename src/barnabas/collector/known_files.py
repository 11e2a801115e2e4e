"""The files that a collector knows, and their positions; subclasses persist them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection

from barnabas.collector.file_progress import FileProgress
from barnabas.collector.fingerprint import Fingerprint

Inode = tuple[int, int]
"""Device and number."""


class KnownFiles(ABC):
    """The files in memory; a subclass's `_keep_...` is called with each change."""

    def __init__(self) -> None:
        self._files: dict[str, FileProgress] = {}
        self._logs: dict[str, list[Fingerprint]] = {}
        self._by_log: dict[str, set[str]] = {}
        self._by_inode: dict[Inode, set[str]] = {}

    @property
    def files(self) -> list[FileProgress]:
        """All files, the one saved last at the end."""
        return list(self._files.values())

    def find(self, file_id: str) -> FileProgress | None:
        return self._files.get(file_id)

    def candidates(self, log: str, inodes: Collection[Inode]) -> list[FileProgress]:
        """The files of the log and those with one of the inodes: no other can be found there."""
        names = set(self._by_log.get(log, ()))
        for inode in inodes:
            names |= self._by_inode.get(inode, set())
        if len(names) == len(self._files):
            return self.files
        return [self._files[name] for name in sorted(names)]

    def passed_over(self, log: str) -> list[Fingerprint] | None:
        """The rotated files at the first look at this log; None if there was none."""
        return self._logs.get(log)

    def knows(self, log: str) -> bool:
        return log in self._logs or bool(self._by_log.get(log))

    def pass_over(self, log: str, files: list[Fingerprint]) -> None:
        """Record the first look at a log, and the files that are not to be sent."""
        self._logs[log] = files
        self._keep_log(log)

    def save(self, progress: FileProgress) -> None:
        """Save a file's position, if it has changed."""
        if self._files.get(progress.file_id) == progress:
            return
        self._put(progress)
        self._keep_file(progress)

    def lines_sent(self) -> int:
        """The number of lines sent, of all files."""
        return sum(file.line - 1 for file in self._files.values())

    def _put(self, progress: FileProgress) -> None:
        file_id = progress.file_id
        before = self._files.pop(file_id, None)
        if before is not None:
            self._by_inode[before.device, before.inode].discard(file_id)
        self._files[file_id] = progress
        self._by_log.setdefault(progress.path, set()).add(file_id)
        self._by_inode.setdefault((progress.device, progress.inode), set()).add(file_id)

    @abstractmethod
    def _keep_file(self, progress: FileProgress) -> None: ...

    @abstractmethod
    def _keep_log(self, log: str) -> None: ...
