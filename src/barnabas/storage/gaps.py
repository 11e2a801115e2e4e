"""Legitimate gaps in a log's offsets, noted in `.barnabas_gaps.deleted` in its directory.

    4711    the log has gaps below this offset only, and is on disk up to there; empty: 0

Compaction takes whole batches, so a cleaned segment may end before the next one begins. A segment
that lost its end to a power cut looks the same. So a part to be cleaned is made durable, and noted
here, before it is swapped in; above that, every segment ends where the next one begins.

That holds for what Barnabas writes: Kafka cleans what it has not flushed, and rolls where a batch
begins. But Kafka removes files named `.deleted` before it reads anything else of a log: if the file
exists, no Kafka has run on the log since, however it ended.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from pathlib import Path

from barnabas.storage.checkpoint import replace_file
from barnabas.storage.files import Entry, Files

_log = logging.getLogger(__name__)

FILE_NAME = ".barnabas_gaps.deleted"
UNKNOWN = -1
"""There may be gaps anywhere."""

_NEXT = ".barnabas_gaps.next.deleted"


def read_gaps_end(files: Files, directory: Path, entries: Iterable[Entry]) -> int:
    """The offset below which a log may have gaps; `entries`: of its directory."""
    # No file: Kafka has written this log, or has run on it since, and notes no gaps.
    if all(entry.name != FILE_NAME for entry in entries):
        return UNKNOWN
    text = files.read(directory / FILE_NAME)
    if text and not text.isdigit():
        _log.warning("%s is damaged; assuming gaps anywhere", directory / FILE_NAME)
        return UNKNOWN
    return int(text or b"0")


def begin_without_gaps(files: Files, directory: Path) -> None:
    """Note no gaps, for a new log. The directory's next sync makes it durable."""
    files.write(directory / FILE_NAME, b"")


class Gaps:
    """The note of one log."""

    __slots__ = ("_directory", "_files", "end")

    def __init__(self, files: Files, directory: Path, end: int) -> None:
        self.end = end
        """`end`: there are gaps below it only; or UNKNOWN."""
        self._files = files
        self._directory = directory

    def note(self, end: int) -> None:
        """Note gaps below `end`, where all is on disk; durable when this returns."""
        replace_file(self._files, self._directory / FILE_NAME, b"%d" % end)
        self.end = end

    def on_renamed(self, directory: Path) -> None:
        """The directory has another name now."""
        self._directory = directory

    def reach(self, end: int) -> None:
        """`note`, if there may be a new gap."""
        # Where gaps may be anywhere, there is nothing to add.
        if 0 <= self.end < end:
            self.note(end)

    def cut(self, offset: int) -> bool:
        """The log ends there now, and later records have no gaps. Returns whether that has to be
        noted before any is written."""
        if self.end <= offset:
            return False
        self.end = offset
        return True

    def prepare(self, end: int) -> None:
        """Write what `extend` renames; waits for the disk, and suits a thread."""
        self._files.write(self._directory / _NEXT, b"%d" % end, sync=True)

    def extend(self, end: int) -> None:
        """`note` by renaming what was prepared. The directory's next sync makes it durable."""
        self._files.replace(self._directory / _NEXT, self._directory / FILE_NAME)
        self.end = end
