"""A file of entries of one size, as all index files are: entry i is at byte i times the size.

The newest entries wait in memory and go to the file a page at a time, so an idle partition costs
neither descriptor nor mapping; older ones are read from the file. It is complete only after
`write_out`: it is trusted below the recovery point and after a clean stop, and otherwise rebuilt
from the log, so the order of writes does not matter.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from struct import Struct

from barnabas.errors import CorruptData
from barnabas.storage.files import File, Files

_PAGE_BYTES = 2048


class EntryFile:
    """The entries, packed, in order; subclasses interpret them."""

    __slots__ = ("_entry", "_file", "_files", "_pending", "_stored", "count", "has_file", "path")

    def __init__(self, files: Files, path: Path, entry: Struct, stored: int) -> None:
        """`stored`: how many entries the file has and may be trusted for."""
        self.path = path
        self.count = stored
        self._files = files
        self._entry = entry
        self._stored = stored
        self._pending: bytearray | None = None  # made with the first entry
        self._file: File | None = None
        self.has_file = stored > 0
        """Whether the file exists, with any content: it is removed with the segment."""

    def __len__(self) -> int:
        return self.count

    @property
    def stored_bytes(self) -> int:
        """The bytes that are in the file."""
        return self._stored * self._entry.size

    @property
    def is_cold(self) -> bool:
        """Reading an entry may have to wait for the disk. OSError."""
        if not self._stored:
            return False
        return self._file is None or not self._file.is_cached(0, self.stored_bytes)

    def add(self, packed: bytes) -> None:
        """Append an entry. Its batch is in the log already, so this may not fail: on a full disk
        the entries stay in memory, and `write_out` raises."""
        if self._pending is None:
            self._pending = bytearray()
        self._pending += packed
        self.count += 1
        if len(self._pending) >= _PAGE_BYTES:
            with suppress(OSError):
                self._spill()

    def raw(self, first: int, count: int) -> bytes:
        """Packed entries from the `first` on; CorruptData if the file has lost its end."""
        size = self._entry.size
        stored = max(0, min(self._stored - first, count))
        found = self._open().pread(stored * size, first * size) if stored else b""
        # The file was trusted for so many entries: it has been cut by something else.
        if len(found) < stored * size:
            raise CorruptData(f"{self.path} ends before its entry {first + len(found) // size}")
        if stored == count or self._pending is None:
            return found
        waiting = max(0, first - self._stored) * size
        return found + self._pending[waiting : waiting + (count - stored) * size]

    def truncate(self, count: int) -> None:
        """Keep the first `count` entries. The file is cut by the next `write_out`."""
        # Only entries that wait in memory go: the file has none of them.
        if count >= self._stored:
            if self._pending is not None:
                del self._pending[(count - self._stored) * self._entry.size :]
        else:
            self._pending = None
            self._stored = count
        self.count = count

    def clear(self) -> None:
        """Remove all entries, whatever the file holds."""
        self.count = self._stored = 0
        self._pending = None

    def write_out(self) -> None:
        """Write the file with exactly these entries, without fsync."""
        self._spill()
        file = self._open()
        size = self._stored * self._entry.size
        # Entries of a truncated log, or of a crash, may follow: Kafka would read them.
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
            self._stored = self.count
            # Not clear(): that would keep the memory of a page for every idle segment.
            self._pending = None

    def _open(self) -> File:
        if self._file is None:
            self._file = self._files.open(self.path, create=True)
            self.has_file = True
        return self._file
