"""Implements the two sparse indexes of a segment, which map offsets to positions and timestamps to
offsets.

    .index      relative offset int32 | position int32          8 bytes, entry i at byte 8i
    .timeindex  timestamp int64 | relative offset int32        12 bytes, entry i at byte 12i

An offset entry means that the batch with this *last* offset begins at that position. A time entry
contains the last offset of a batch and a timestamp: no record before that batch is newer than the
timestamp. In both indexes, the first column is strictly increasing, so a lookup finds the greatest
entry at or below the target (ST-3); the log is scanned from that position.

A lookup in a full segment needs about ten small reads. However, nearly every reader is either at
the end of the log, where the entries are still in memory, or continues where an earlier read has
ended. The page of entries used by the last lookup is therefore cached, and the next lookup first
tries that page and the following page.
"""

from __future__ import annotations

from pathlib import Path
from struct import Struct

from barnabas.storage.entry_file import EntryFile
from barnabas.storage.files import Files

OFFSET_ENTRY = Struct(">ii")
TIME_ENTRY = Struct(">qi")

MAX_RELATIVE_OFFSET = 2**31 - 1

_FIRST, _SECOND = 0, 1  # the columns
_PAGE_ENTRIES = 512  # 4 KiB of the offset index, which cover at least 2 MiB of the log

IndexEntry = tuple[int, int]


class SparseIndex(EntryFile):
    """Stores the entries of one index file in order. Supports `len`, `[i]` and lookups by either
    column.
    """

    __slots__ = ("_last", "_page", "_page_at")

    def __init__(self, files: Files, path: Path, entry: Struct, stored: int) -> None:
        super().__init__(files, path, entry, stored)
        self._last: IndexEntry | None = None  # cached because every append reads it
        self._page = b""  # stored entries, starting with entry `_page_at`
        self._page_at = 0

    def __getitem__(self, i: int) -> IndexEntry:
        first, second = self._entry.unpack(self.raw(i, 1))
        return first, second

    @property
    def last(self) -> IndexEntry | None:
        """The newest entry."""
        if self._last is None and self.count:
            self._last = self[self.count - 1]
        return self._last

    def append(self, first: int, second: int) -> None:
        """Append an entry. The caller must make sure that both columns increase."""
        self._last = (first, second)
        self.add(self._entry.pack(first, second))

    # --- lookups ---------------------------------------------------------------------------------

    def floor(self, target: int) -> IndexEntry | None:
        """Return the entry with the largest first column that is not above `target`."""
        return self._floor(target, _FIRST)

    def floor_by_second(self, target: int) -> IndexEntry | None:
        """Return the entry with the largest second column that is not above `target`."""
        return self._floor(target, _SECOND)

    def _floor(self, target: int, column: int) -> IndexEntry | None:
        stored = self._stored
        # Most lookups end at one of the newest entries, which have not been written to the file
        # yet.
        if self._pending:
            found = self._floor_in(self._pending, target, column)
            if found is not None or not stored:
                return found
        low, high = 0, stored
        if self._page:
            low, high = self._beside_page(target, column)
        while high - low > _PAGE_ENTRIES:
            middle = (low + high) >> 1
            if self[middle][column] <= target:
                low = middle
            else:
                high = middle
        if low < high:
            self._keep_page(low, high)
        return self._floor_in(self._page, target, column) if self._page else None

    def _beside_page(self, target: int, column: int) -> tuple[int, int]:
        """Use the cached page and the page after it to narrow the range in which the stored entry
        must be.

        If the entry is in the page that is cached when this returns, the range is empty.
        """
        size = self._entry.size
        for is_first in (True, False):
            page = self._page
            end = self._page_at + len(page) // size
            if self._entry.unpack_from(page)[column] > target:
                return 0, self._page_at
            if (
                end == self._stored
                or self._entry.unpack_from(page, len(page) - size)[column] > target
            ):
                return 0, 0
            if is_first:
                # Also include the last entry before the range, because it may be the result.
                self._keep_page(end - 1, min(end - 1 + _PAGE_ENTRIES, self._stored))
        return end - 1, self._stored

    def _keep_page(self, begin: int, end: int) -> None:
        self._page = b""  # in case `raw` fails because the file was truncated
        self._page, self._page_at = self.raw(begin, end - begin), begin

    def _floor_in(self, entries: bytes | bytearray, target: int, column: int) -> IndexEntry | None:
        """Search for the entry in a buffer of packed entries."""
        unpack, size = self._entry.unpack_from, self._entry.size
        low, high = 0, len(entries) // size
        while low < high:
            middle = (low + high) >> 1
            if unpack(entries, middle * size)[column] <= target:
                low = middle + 1
            else:
                high = middle
        if not low:
            return None
        first, second = unpack(entries, (low - 1) * size)
        return first, second

    # --- the file --------------------------------------------------------------------------------

    def truncate(self, count: int) -> None:
        """Remove all entries but the first `count`."""
        self._last, self._page = None, b""
        super().truncate(count)

    def clear(self) -> None:
        """Remove all entries, regardless of what the file contains."""
        self._last, self._page = None, b""
        super().clear()

    def release(self) -> None:
        """Close the file and drop the cached page. Both are loaded again when they are needed."""
        self._page = b""
        super().release()
