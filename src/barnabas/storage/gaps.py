"""Records where a log's offsets may have legitimate gaps, in `.barnabas_gaps.deleted`.

    4711    the log has gaps only below this offset and is on disk up to it; an empty file means 0

Compaction removes whole batches, so a cleaned segment may end before the next segment begins. A
segment that lost its end to a power failure looks the same. So the part to be cleaned is made
durable and noted here before it is swapped in; above that, every segment ends where the next one
begins.

This holds for files that Barnabas writes: Kafka cleans records that it has not flushed, and rolls
where a batch begins. But Kafka removes files named `.deleted` before it reads anything else of a
log: if the file exists, no Kafka has run on the log since, however it ended.
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
"""There may be gaps anywhere in the log."""

_NEXT = ".barnabas_gaps.next.deleted"


def read_gaps_end(files: Files, directory: Path, entries: Iterable[Entry]) -> int:
    """Return the offset below which a log may have gaps; `entries` are its directory's entries."""
    # No file: Kafka wrote this log, or has run on it since, and Kafka notes no gaps.
    if all(entry.name != FILE_NAME for entry in entries):
        return UNKNOWN
    text = files.read(directory / FILE_NAME)
    if text and not text.isdigit():
        _log.warning("%s is damaged; assuming gaps anywhere", directory / FILE_NAME)
        return UNKNOWN
    return int(text or b"0")


def begin_without_gaps(files: Files, directory: Path) -> None:
    """Note for a new log that it has no gaps. The directory's next sync makes the note durable."""
    files.write(directory / FILE_NAME, b"")


class Gaps:
    """One log's note of its gaps."""

    __slots__ = ("_directory", "_files", "end")

    def __init__(self, files: Files, directory: Path, end: int) -> None:
        self.end = end
        """All gaps are below this offset; UNKNOWN if they may be anywhere."""
        self._files = files
        self._directory = directory

    def note(self, end: int) -> None:
        """Note gaps below `end`; everything below it is on disk. Durable on return."""
        replace_file(self._files, self._directory / FILE_NAME, b"%d" % end)
        self.end = end

    def on_renamed(self, directory: Path) -> None:
        """Record that the directory has a new name."""
        self._directory = directory

    def reach(self, end: int) -> None:
        """Call `note` if there may be a new gap."""
        # Where gaps may be anywhere, there is nothing to add.
        if 0 <= self.end < end:
            self.note(end)

    def cut(self, offset: int) -> bool:
        """Record that the log now ends at the offset, and that later records have no gaps.

        Returns whether this has to be noted before any record is written.
        """
        if self.end <= offset:
            return False
        self.end = offset
        return True

    def prepare(self, end: int) -> None:
        """Write the file that `extend` renames. Waits for the disk; can run in a thread."""
        self._files.write(self._directory / _NEXT, b"%d" % end, sync=True)

    def extend(self, end: int) -> None:
        """Note gaps by renaming the prepared file. The directory's next sync makes the note
        durable.
        """
        self._files.replace(self._directory / _NEXT, self._directory / FILE_NAME)
        self.end = end
