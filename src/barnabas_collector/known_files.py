"""Keeps track of the files that a collector knows and of their positions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import TypeVar

from barnabas_collector.file_progress import FileProgress
from barnabas_collector.fingerprint import Fingerprint, digest
from barnabas_collector.passed_over import PassedOver

K = TypeVar("K")
_NO_LOG = ""


class KnownFiles(ABC):
    """Holds the files in memory and calls a subclass's `_keep_...` on each change."""

    is_forgetful = False  # whether files that are gone are forgotten after a while

    def __init__(self) -> None:
        self._files: dict[str, FileProgress] = {}
        self._logs: dict[str, list[PassedOver]] = {}
        self._by_log: dict[str, set[str]] = {}
        self._by_inode: dict[int, set[str]] = {}
        self._by_beginning: dict[Fingerprint, set[str]] = {}
        self._beginning_bytes: Counter[int] = Counter()

    @property
    def files(self) -> list[FileProgress]:
        """All known files, sorted by the time of their last save."""
        return list(self._files.values())

    def find(self, file_id: str) -> FileProgress | None:
        return self._files.get(file_id)

    def candidates(self, log: str, inodes: Collection[int]) -> list[FileProgress]:
        """Return the log's files and all files with one of these inodes. A look at the log cannot
        find any other known file."""
        names = set(self._by_log.get(log, ()))
        for inode in inodes:
            names |= self._by_inode.get(inode, set())
        if len(names) == len(self._files):
            return self.files
        return [self._files[name] for name in sorted(names)]

    def alike(self, directory: Path, beginning: bytes) -> Iterator[FileProgress]:
        """Yield the files of the logs in a directory that have this beginning and of which at least
        a part was sent."""
        # Each length takes one hash, but there are few lengths, because most beginnings have the
        # full length.
        for size_bytes in list(self._beginning_bytes):
            if 0 < size_bytes <= len(beginning):
                seen = Fingerprint(size_bytes, digest(beginning[:size_bytes]))
                for file_id in sorted(self._by_beginning.get(seen, ())):
                    file = self._files[file_id]
                    if file.sent_bytes and Path(file.path).parent == directory:
                        yield file

    @property
    def has_looked(self) -> bool:
        """Return whether this run or an earlier one has looked at any log."""
        return bool(self._logs or self._files)

    def end_first_look(self) -> None:
        """Record that all logs have been looked at for the first time, even if there are none."""
        self.pass_over(_NO_LOG, [])

    def passed_over(self, log: str) -> list[PassedOver] | None:
        """Return the files that were passed over by the first look at this log, or None before the
        first look."""
        return self._logs.get(log)

    def knows(self, log: str) -> bool:
        return log in self._logs or bool(self._by_log.get(log))

    def pass_over(self, log: str, files: list[PassedOver]) -> None:
        """Record the first look at a log, and the rotated files that must not be sent."""
        self._logs[log] = files
        self._keep_log(log)

    def save(self, progress: FileProgress) -> None:
        """Save the position of a file if the position has changed."""
        if self._files.get(progress.file_id) == progress:
            return
        self._put(progress)
        self._keep_file(progress)

    def _remove(self, file_id: str) -> None:
        """Forget a file."""
        file = self._files.pop(file_id, None)
        if file is not None:
            _discard(self._by_log, file.path, file_id)
            self._remove_from_indexes(file)

    def lines_sent(self) -> int:
        """Return the number of lines that were sent from all files."""
        return sum(file.line - 1 for file in self._files.values())

    def _put(self, progress: FileProgress) -> None:
        file_id = progress.file_id
        before = self._files.pop(file_id, None)
        if before is not None:
            self._remove_from_indexes(before)
        self._files[file_id] = progress
        self._by_log.setdefault(progress.path, set()).add(file_id)
        self._by_inode.setdefault(progress.inode, set()).add(file_id)
        seen = progress.fingerprint
        self._by_beginning.setdefault(seen, set()).add(file_id)
        self._beginning_bytes[seen.size_bytes] += 1

    def _remove_from_indexes(self, file: FileProgress) -> None:
        _discard(self._by_inode, file.inode, file.file_id)
        seen = file.fingerprint
        _discard(self._by_beginning, seen, file.file_id)
        self._beginning_bytes[seen.size_bytes] -= 1
        if not self._beginning_bytes[seen.size_bytes]:
            del self._beginning_bytes[seen.size_bytes]

    @abstractmethod
    def _keep_file(self, progress: FileProgress) -> None: ...

    @abstractmethod
    def _keep_log(self, log: str) -> None: ...


def _discard(index: dict[K, set[str]], key: K, file_id: str) -> None:
    """Remove a file from an index, and its key if no other file shares it."""
    index[key].discard(file_id)
    if not index[key]:
        del index[key]
