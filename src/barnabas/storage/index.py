"""Sparse indexes of a segment: offset to position, and timestamp to offset.

    .index      relative offset int32 | position int32          8 bytes, entry i at byte 8i
    .timeindex  timestamp int64 | relative offset int32        12 bytes, entry i at byte 12i

An offset entry says: the batches whose *last* offset is this one begin at that position. A time
entry says: every record before the batch that ends with that offset is no younger. In both the
first column rises strictly, so a lookup is the greatest entry at or below the target (ST-3); the
log is then scanned from there. In a full segment that is about sixteen small reads.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from operator import itemgetter
from pathlib import Path
from struct import Struct

from barnabas.storage.entry_file import EntryFile
from barnabas.storage.files import Files

OFFSET_ENTRY = Struct(">ii")
TIME_ENTRY = Struct(">qi")

MAX_RELATIVE_OFFSET = 2**31 - 1

IndexEntry = tuple[int, int]

_first: Callable[[IndexEntry], int] = itemgetter(0)
_second: Callable[[IndexEntry], int] = itemgetter(1)


class SparseIndex(EntryFile):
    """The entries of one index file, in order; `len`, `[i]`, and lookups by either column."""

    __slots__ = ("_last",)

    def __init__(self, files: Files, path: Path, entry: Struct, stored: int) -> None:
        super().__init__(files, path, entry, stored)
        self._last: IndexEntry | None = None  # kept, for it is asked at every append

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
        """Both columns must rise; that is the caller's duty, as it knows what they are."""
        self._last = (first, second)
        self.add(self._entry.pack(first, second))

    def floor(self, target: int) -> IndexEntry | None:
        """The entry with the greatest first column at or below `target`."""
        return self._floor(target, _first)

    def floor_by_second(self, target: int) -> IndexEntry | None:
        """The entry with the greatest second column at or below `target`."""
        return self._floor(target, _second)

    def _floor(self, target: int, column: Callable[[IndexEntry], int]) -> IndexEntry | None:
        low = 0
        # Nearly every reader is close to the end, whose entries need no system call.
        if self._pending and self._stored and column(self[self._stored]) <= target:
            low = self._stored
        i = bisect_right(self, target, lo=low, key=column)
        return self[i - 1] if i else None

    def truncate(self, count: int) -> None:
        """Keep the first `count` entries."""
        self._last = None
        super().truncate(count)

    def clear(self) -> None:
        """Begin anew, whatever the file holds."""
        self._last = None
        super().clear()
