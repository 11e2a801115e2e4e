"""Sparse indexes of a segment: offset to position, and timestamp to offset.

    .index      relative offset int32 | position int32          8 bytes, entry i at byte 8i
    .timeindex  timestamp int64 | relative offset int32        12 bytes, entry i at byte 12i

An offset entry says: the batches whose *last* offset is this one begin at that position. A time
entry says: every record before the batch that ends with that offset is no younger. In both the
first column rises strictly, so a lookup is the greatest entry at or below the target (ST-3); the
log is then scanned from there.

The newest entries wait in memory and go to the file a page at a time, so an idle partition costs
neither descriptor nor mapping; older ones are read where they lie, about sixteen small reads for a
full segment. The file is complete only after `write_out`: an index is trusted below the recovery
point and after a clean stop, and otherwise made anew from the log, so it needs no order of writes.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from contextlib import suppress
from operator import itemgetter
from pathlib import Path
from struct import Struct

from barnabas.errors import CorruptData
from barnabas.storage.files import File, Files

OFFSET_ENTRY = Struct(">ii")
TIME_ENTRY = Struct(">qi")

MAX_RELATIVE_OFFSET = 2**31 - 1

_PAGE_BYTES = 2048

IndexEntry = tuple[int, int]

_first: Callable[[IndexEntry], int] = itemgetter(0)
_second: Callable[[IndexEntry], int] = itemgetter(1)


class SparseIndex:
    """The entries of one index file, in order; `len`, `[i]`, and lookups by either column."""

    __slots__ = ("_entry", "_file", "_files", "_last", "_pending", "_stored", "path")

    def __init__(self, files: Files, path: Path, entry: Struct, stored: int) -> None:
        """`stored`: how many entries the file has and may be trusted for."""
        self.path = path
        self._files = files
        self._entry = entry
        self._stored = stored
        self._pending = bytearray()
        self._file: File | None = None
        self._last: IndexEntry | None = None  # kept, for it is asked at every append

    def __len__(self) -> int:
        return self._stored + len(self._pending) // self._entry.size

    def __getitem__(self, i: int) -> IndexEntry:
        size = self._entry.size
        if i >= self._stored:
            first, second = self._entry.unpack_from(self._pending, (i - self._stored) * size)
        else:
            raw = self._open().pread(size, i * size)
            if len(raw) < size:
                raise CorruptData(f"{self.path} ends before its entry {i}")
            first, second = self._entry.unpack(raw)
        return first, second

    @property
    def last(self) -> IndexEntry | None:
        """The newest entry."""
        if self._last is None and (count := len(self)):
            self._last = self[count - 1]
        return self._last

    def append(self, first: int, second: int) -> None:
        """Both columns must rise; that is the caller's duty, as it knows what they are."""
        self._pending += self._entry.pack(first, second)
        self._last = (first, second)
        if len(self._pending) >= _PAGE_BYTES:
            # The batch is in the log already, so its append may not fail any more: on a full disk
            # the entries stay in memory, and `write_out` says what is wrong.
            with suppress(OSError):
                self._spill()

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
        if count >= self._stored:
            del self._pending[(count - self._stored) * self._entry.size :]
        else:
            self._pending.clear()
            self._stored = count
            self._open().truncate(count * self._entry.size)

    def clear(self) -> None:
        """Begin anew, whatever the file holds."""
        self._stored = 0
        self._pending = bytearray()
        self._last = None

    def write_out(self) -> None:
        """Make the file exactly the entries. It is not fsynced."""
        self._spill()
        file = self._open()
        size = self._stored * self._entry.size
        if file.size() != size:
            file.truncate(size)

    def release(self) -> None:
        """Give back the descriptor; the next use opens the file again."""
        if self._file is not None:
            self._file.release()
            self._file = None

    def _spill(self) -> None:
        if self._pending:
            self._open().write(self._stored * self._entry.size, self._pending)
            self._stored = len(self)
            # Not clear(): that would keep the memory of a page for every idle segment.
            self._pending = bytearray()

    def _open(self) -> File:
        if self._file is None:
            self._file = self._files.open(self.path, create=True)
        return self._file
