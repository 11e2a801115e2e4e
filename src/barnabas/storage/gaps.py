"""Where a log may lack offsets that nobody lost: `.barnabas_gaps.deleted`, beside its segments.

    4711    the log has gaps below this offset only, and is on disk up to there; empty: 0

Compaction takes whole batches, so a cleaned segment may end before the next one begins. A segment
that lost its end to a power cut looks the same. So what is to be cleaned is made durable, and noted
here, before it is swapped in; above that, every segment ends where the next one begins.

That is true of what Barnabas writes: Kafka cleans what it has not flushed, and rolls where a batch
begins. But Kafka removes what is called `.deleted` before it reads anything else of a log: where
the file is there, no Kafka has been since, however it ended.
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
    """Below which offset a log may have gaps, of whose directory these are the entries."""
    if all(entry.name != FILE_NAME for entry in entries):
        return UNKNOWN
    text = files.read(directory / FILE_NAME)
    if text and not text.isdigit():
        _log.warning("%s is damaged; it is begun anew", directory / FILE_NAME)
        return UNKNOWN
    return int(text or b"0")


def begin_without_gaps(files: Files, directory: Path) -> None:
    """Of a log that is about to be made. The directory's next sync makes it durable."""
    files.write(directory / FILE_NAME, b"")


class Gaps:
    """What one log's file says."""

    __slots__ = ("_directory", "_files", "end")

    def __init__(self, files: Files, directory: Path, end: int) -> None:
        self.end = end
        """There are gaps below it only; UNKNOWN."""
        self._files = files
        self._directory = directory

    def note(self, end: int) -> None:
        """What lies below is on disk; durable when this returns."""
        replace_file(self._files, self._directory / FILE_NAME, b"%d" % end)
        self.end = end

    def reach(self, end: int) -> None:
        """`note`, if there may be a gap now where there was none."""
        if 0 <= self.end < end:
            self.note(end)

    def cut(self, offset: int) -> bool:
        """The log ends there now: what will be written above has no gaps. Whether that is to be
        noted before anything is."""
        if self.end <= offset:
            return False
        self.end = offset
        return True

    def prepare(self, end: int) -> None:
        """Write what `extend` takes over; suits a thread, for it waits for the disk."""
        self._files.write(self._directory / _NEXT, b"%d" % end, sync=True)

    def extend(self, end: int) -> None:
        """`note` what was prepared. The directory's next sync makes it durable."""
        self._files.replace(self._directory / _NEXT, self._directory / FILE_NAME)
        self.end = end
