"""Files of a log that are out of use: renamed at once, removed after `file.delete.delay.ms`.

A renamed file cannot be mistaken for a part of the log, whenever the process dies; leftovers under
such names are removed at the next start (`leftovers`). Removing a large file takes the disk a
while, so it is done in a thread.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from pathlib import Path

from barnabas.storage.files import Files
from barnabas.storage.leftovers import DELETED
from barnabas.storage.segment import Segment


class Discards:
    """The files of one log that wait for their removal."""

    __slots__ = ("_files", "_waiting")

    def __init__(self, files: Files) -> None:
        self._files = files
        # One end each for loop and thread; created with the first, as most logs have none.
        self._waiting: deque[tuple[int, Path]] | None = None

    def __len__(self) -> int:
        return len(self._waiting or ())

    def discard(self, segments: Iterable[Segment], due_ms: int) -> None:
        """Rename their files, in this order; they are removed after `due_ms`."""
        if self._waiting is None:
            self._waiting = deque()
        for path in (path for segment in segments for path in segment.paths()):
            target = path.with_name(path.name + DELETED)
            try:
                self._files.replace(path, target)
            except FileNotFoundError:
                continue
            self._waiting.append((due_ms, target))

    def remove_due(self, now_ms: int) -> int:
        """Remove those that are due; returns how many. Suits a thread."""
        removed = 0
        while self._waiting and self._waiting[0][0] <= now_ms:
            self._files.remove(self._waiting[0][1])
            self._waiting.popleft()
            removed += 1
        return removed
