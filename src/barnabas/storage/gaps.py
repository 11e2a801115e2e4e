"""Records, in the file `.barnabas_gaps.deleted`, which part of a log may have gaps between its
offsets.

    4711    the log has gaps only below this offset, and is on disk up to it; an empty file means 0

Compaction removes whole batches, so a cleaned segment may end below the offset at which the next
segment begins. A segment whose end was lost in a power failure looks the same. Before a cleaned
segment is swapped in, the cleaned part of the log is therefore made durable and its end offset is
recorded in this file. Above that offset, every segment ends where the next one begins.

This holds only if Barnabas has written all files. Kafka cleans records before it has flushed them,
and may roll at an offset above the end of the last batch. However, before Kafka reads anything else
in a log, it removes all files with the suffix `.deleted`. If the file exists, Kafka has therefore
not used the log since the file was written.
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
    """Return the offset below which the log may have gaps. `entries` is the listing of the log's
    directory.
    """
    # If the file does not exist, a Kafka broker has used this log, and Kafka does not record gaps.
    if all(entry.name != FILE_NAME for entry in entries):
        return UNKNOWN
    text = files.read(directory / FILE_NAME)
    if text and not text.isdigit():
        _log.warning("%s is damaged; assuming gaps anywhere", directory / FILE_NAME)
        return UNKNOWN
    return int(text or b"0")


def begin_without_gaps(files: Files, directory: Path) -> None:
    """Record that a new log has no gaps. The record is durable after the next sync of the
    directory.
    """
    files.write(directory / FILE_NAME, b"")


class Gaps:
    """Tracks which part of a log may have gaps."""

    __slots__ = ("_directory", "_files", "end")

    def __init__(self, files: Files, directory: Path, end: int) -> None:
        self.end = end
        """All gaps are below this offset. UNKNOWN means that any part of the log may have gaps."""
        self._files = files
        self._directory = directory

    def note(self, end: int) -> None:
        """Record durably that there may be gaps below `end`. The log must be on disk up to that
        offset.
        """
        replace_file(self._files, self._directory / FILE_NAME, b"%d" % end)
        self.end = end

    def on_renamed(self, directory: Path) -> None:
        """Switch to the new name of the directory."""
        self._directory = directory

    def reach(self, end: int) -> None:
        """Call `note` if gaps up to this offset are not recorded yet."""
        # If any part of the log may have gaps anyway, there is nothing to record.
        if 0 <= self.end < end:
            self.note(end)

    def cut(self, offset: int) -> bool:
        """Record that the log was truncated to the offset. The records written from now on have no
        gaps.

        Returns whether the change must be on disk before a record is written.
        """
        if self.end <= offset:
            return False
        self.end = offset
        return True

    def prepare(self, end: int) -> None:
        """Write the file that `extend` renames later.

        This has to wait for the disk. It may run in a thread.
        """
        self._files.write(self._directory / _NEXT, b"%d" % end, sync=True)

    def extend(self, end: int) -> None:
        """Record new gaps by renaming the file that `prepare` has written.

        The record is durable after the next sync of the directory.
        """
        self._files.replace(self._directory / _NEXT, self._directory / FILE_NAME)
        self.end = end
