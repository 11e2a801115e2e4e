"""Records where a log's offsets may have legitimate gaps, in `.barnabas_gaps.deleted`.

    4711    the log has gaps only below this offset, and is on disk up to it; an empty file means 0

Compaction removes whole batches, so a cleaned segment may end before the next segment begins. A
segment that lost its end to a power failure looks the same. The cleaned part is therefore made
durable and recorded in this file before it is swapped in. Above that offset, every segment ends
where the next one begins.

This is true only for files that Barnabas writes: Kafka cleans records that it has not flushed, and
rolls where a batch begins. However, Kafka removes files named `.deleted` before it reads anything
else in a log. If the file exists, no Kafka broker has run on the log since it was written.
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
    """Return the offset below which a log may have gaps; `entries` list its directory."""
    # If the file is missing, a Kafka broker has used this log, and Kafka records no gaps.
    if all(entry.name != FILE_NAME for entry in entries):
        return UNKNOWN
    text = files.read(directory / FILE_NAME)
    if text and not text.isdigit():
        _log.warning("%s is damaged; assuming gaps anywhere", directory / FILE_NAME)
        return UNKNOWN
    return int(text or b"0")


def begin_without_gaps(files: Files, directory: Path) -> None:
    """Record that a new log has no gaps. The directory's next sync makes this durable."""
    files.write(directory / FILE_NAME, b"")


class Gaps:
    """The record of where a log may have gaps."""

    __slots__ = ("_directory", "_files", "end")

    def __init__(self, files: Files, directory: Path, end: int) -> None:
        self.end = end
        """All gaps are below this offset; UNKNOWN if they may be anywhere."""
        self._files = files
        self._directory = directory

    def note(self, end: int) -> None:
        """Durably record gaps below `end`, up to which everything is on disk."""
        replace_file(self._files, self._directory / FILE_NAME, b"%d" % end)
        self.end = end

    def on_renamed(self, directory: Path) -> None:
        """Use the directory's new name."""
        self._directory = directory

    def reach(self, end: int) -> None:
        """Call `note` if there may be a new gap."""
        # If there may be gaps anywhere, there is nothing to add.
        if 0 <= self.end < end:
            self.note(end)

    def cut(self, offset: int) -> bool:
        """Note that the log was truncated to the offset, and that later records have no gaps.

        Returns whether this must be on disk before any record is written.
        """
        if self.end <= offset:
            return False
        self.end = offset
        return True

    def prepare(self, end: int) -> None:
        """Write the file that `extend` renames.

        This waits for the disk, and can run in a thread.
        """
        self._files.write(self._directory / _NEXT, b"%d" % end, sync=True)

    def extend(self, end: int) -> None:
        """Record gaps by renaming the prepared file.

        The directory's next sync makes this durable.
        """
        self._files.replace(self._directory / _NEXT, self._directory / FILE_NAME)
        self.end = end
