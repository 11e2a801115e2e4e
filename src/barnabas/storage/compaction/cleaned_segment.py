"""The segment that a cleaner writes: files with the suffix `.cleaned` until they are swapped in."""

from __future__ import annotations

from pathlib import Path

from barnabas.storage.files import Files
from barnabas.storage.index import OFFSET_ENTRY, TIME_ENTRY
from barnabas.storage.leftovers import CLEANED
from barnabas.storage.segment import (
    ABORTED_INDEX_SUFFIX,
    LOG_SUFFIX,
    OFFSET_INDEX_SUFFIX,
    TIME_INDEX_SUFFIX,
    Segment,
    Sizes,
)
from barnabas.storage.transaction_index import ABORTED_ENTRY_BYTES


class CleanedSegment(Segment):
    """A segment that is appended to, under temporary names."""

    __slots__ = ()

    @classmethod
    def create(cls, files: Files, directory: Path, base_offset: int) -> CleanedSegment:
        """A new one, in new files: a cleaner whose broker was killed may still be writing to its
        own."""
        segment = cls(files, directory, base_offset, Sizes(0, 0, 0))
        segment.remove()
        for suffix in (LOG_SUFFIX, OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX):
            files.write(segment.path(suffix), b"")
        return segment

    def path(self, suffix: str) -> Path:
        path = super().path(suffix)
        return path.with_name(path.name + CLEANED)

    def finish(self) -> Sizes:
        """Write everything, and make it durable; returns the sizes of its files."""
        self.write_out()
        for path in self.paths():
            self._files.sync(path)
        self.release()
        return Sizes(
            self.size_bytes,
            len(self.offset_index) * OFFSET_ENTRY.size,
            len(self.time_index) * TIME_ENTRY.size,
            0 if self.aborted is None else len(self.aborted) * ABORTED_ENTRY_BYTES,
        )

    def remove(self) -> None:
        """Remove all of its files."""
        self.release()
        for suffix in (
            LOG_SUFFIX,
            OFFSET_INDEX_SUFFIX,
            TIME_INDEX_SUFFIX,
            ABORTED_INDEX_SUFFIX,
        ):
            self._files.remove(self.path(suffix))
