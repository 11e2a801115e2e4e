"""Stores fixed-size entries in a file, such as an index: entry i is at byte i times the size.

The newest entries are buffered in memory and written a page at a time, so an idle partition needs
neither a file descriptor nor a mapping. The file is complete only after `write_out`. It is trusted
below the recovery point and after a clean stop; otherwise it is rebuilt from the log. The order of
writes therefore does not matter.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from struct import Struct

from barnabas.errors import CorruptData
from barnabas.storage.files import File, Files

_PAGE_BYTES = 2048


class EntryFile:
    """A file of packed entries in order, which subclasses interpret."""

    __slots__ = ("_entry", "_file", "_files", "_pending", "_stored", "count", "has_file", "path")

    def __init__(self, files: Files, path: Path, entry: Struct, stored: int) -> None:
        """Open the file lazily; `stored` is the number of entries in it that can be trusted."""
        self.path = path
        self.count = stored
        self._files = files
        self._entry = entry
        self._stored = stored
        self._pending: bytearray | None = None  # created with the first entry
        self._file: File | None = None
        self.has_file = stored > 0
        """Whether the file exists, even if empty, and so must be removed with the segment."""

    def __len__(self) -> int:
        return self.count

    @property
    def stored_bytes(self) -> int:
        """Return the number of bytes in the file."""
        return self._stored * self._entry.size

    @property
    def is_cold(self) -> bool:
        """Return whether reading an entry may have to wait for the disk. Raises OSError."""
        if not self._stored:
            return False
        return self._file is None or not self._file.is_cached(0, self.stored_bytes)

    def add(self, packed: bytes) -> None:
        """Append an entry. This must not fail, because its batch is already in the log.

        On a full disk, the entries stay in memory, and `write_out` raises OSError.
        """
        if self._pending is None:
            self._pending = bytearray()
        self._pending += packed
        self.count += 1
        if len(self._pending) >= _PAGE_BYTES:
            with suppress(OSError):
                self._spill()

    def raw(self, first: int, count: int) -> bytes:
        """Return `count` packed entries from `first` on. Raises CorruptData if the file has lost
        its end.
        """
        size = self._entry.size
        stored = max(0, min(self._stored - first, count))
        found = self._open().pread(stored * size, first * size) if stored else b""
        # Something else has truncated the file since it was opened.
        if len(found) < stored * size:
            raise CorruptData(f"{self.path} ends before its entry {first + len(found) // size}")
        if stored == count or self._pending is None:
            return found
        waiting = max(0, first - self._stored) * size
        return found + self._pending[waiting : waiting + (count - stored) * size]

    def truncate(self, count: int) -> None:
        """Keep the first `count` entries. The next `write_out` truncates the file."""
        # Only entries in memory are removed; none of them is in the file.
        if count >= self._stored:
            if self._pending is not None:
                del self._pending[(count - self._stored) * self._entry.size :]
        else:
            self._pending = None
            self._stored = count
        self.count = count

    def clear(self) -> None:
        """Remove all entries, regardless of the file's content."""
        self.count = self._stored = 0
        self._pending = None

    def write_out(self) -> None:
        """Write the file with exactly these entries, without fsync."""
        self._spill()
        file = self._open()
        size = self._stored * self._entry.size
        # Entries from before a truncation or a crash may follow, and Kafka would read them.
        if file.size() != size:
            file.truncate(size)

    def release(self) -> None:
        """Close the descriptor; the next use reopens the file."""
        if self._file is not None:
            self._file.release()
            self._file = None

    def _spill(self) -> None:
        if self._pending:
            self._open().write(self._stored * self._entry.size, self._pending)
            self._stored = self.count
            # clear() would keep a page of memory for every idle segment.
            self._pending = None

    def _open(self) -> File:
        if self._file is None:
            self._file = self._files.open(self.path, create=True)
            self.has_file = True
        return self._file
