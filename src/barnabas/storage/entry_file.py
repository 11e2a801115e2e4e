"""Stores entries of a fixed size in a file, such as an index. Entry i is stored at i times the
entry size.

The newest entries are kept in memory and are written a page at a time, so an idle partition needs
neither a file descriptor nor a memory mapping. The file is complete only after `write_out`. After a
clean shutdown, the file is trusted; after a crash, only the entries below the recovery point are
trusted, and the others are rebuilt from the log. The order in which entries reach the disk
therefore does not matter.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from struct import Struct

from barnabas.errors import CorruptData
from barnabas.storage.files import File, Files

_PAGE_BYTES = 2048


class EntryFile:
    """Stores packed entries in order. Subclasses define what the entries contain."""

    __slots__ = ("_entry", "_file", "_files", "_pending", "_stored", "count", "has_file", "path")

    def __init__(self, files: Files, path: Path, entry: Struct, stored: int) -> None:
        """Open the file on first use; its first `stored` entries can be trusted."""
        self.path = path
        self.count = stored
        self._files = files
        self._entry = entry
        self._stored = stored
        self._pending: bytearray | None = None  # created with the first entry
        self._file: File | None = None
        self.has_file = stored > 0
        """Whether the file exists, even if it is empty. If it exists, it must be removed together
        with the segment.
        """

    def __len__(self) -> int:
        return self.count

    @property
    def stored_bytes(self) -> int:
        """Return the number of bytes that are stored in the file."""
        return self._stored * self._entry.size

    @property
    def is_cold(self) -> bool:
        """Return whether reading an entry might have to wait for the disk. Raises OSError."""
        if not self._stored:
            return False
        return self._file is None or not self._file.is_cached(0, self.stored_bytes)

    def add(self, packed: bytes) -> None:
        """Append an entry. This must not fail, because the batch that it describes is already in
        the log.

        If the disk is full, the entries stay in memory and `write_out` raises OSError.
        """
        if self._pending is None:
            self._pending = bytearray()
        self._pending += packed
        self.count += 1
        if len(self._pending) >= _PAGE_BYTES:
            with suppress(OSError):
                self._spill()

    def raw(self, first: int, count: int) -> bytes:
        """Return `count` packed entries, starting with entry `first`. Raises CorruptData if the
        file has become shorter.
        """
        size = self._entry.size
        stored = max(0, min(self._stored - first, count))
        found = self._open().pread(stored * size, first * size) if stored else b""
        # Another process has truncated the file since it was opened.
        if len(found) < stored * size:
            raise CorruptData(f"{self.path} ends before its entry {first + len(found) // size}")
        if stored == count or self._pending is None:
            return found
        waiting = max(0, first - self._stored) * size
        return found + self._pending[waiting : waiting + (count - stored) * size]

    def truncate(self, count: int) -> None:
        """Keep only the first `count` entries. The file itself is truncated by the next
        `write_out`.
        """
        # All entries to be removed are still in memory, so the file need not change.
        if count >= self._stored:
            if self._pending is not None:
                del self._pending[(count - self._stored) * self._entry.size :]
        else:
            self._pending = None
            self._stored = count
        self.count = count

    def clear(self) -> None:
        """Remove all entries, regardless of what the file contains."""
        self.count = self._stored = 0
        self._pending = None

    def write_out(self) -> None:
        """Write the file so that it contains exactly these entries. The file is not synced."""
        self._spill()
        file = self._open()
        size = self._stored * self._entry.size
        # The file may still contain entries from before a truncation or a crash, which Kafka would
        # read.
        if file.size() != size:
            file.truncate(size)

    def release(self) -> None:
        """Close the file descriptor. The file is reopened when it is used again."""
        if self._file is not None:
            self._file.release()
            self._file = None

    def _spill(self) -> None:
        if self._pending:
            self._open().write(self._stored * self._entry.size, self._pending)
            self._stored = self.count
            # Replace the buffer, because clear() would keep a page of memory allocated for every
            # idle segment.
            self._pending = None

    def _open(self) -> File:
        if self._file is None:
            self._file = self._files.open(self.path, create=True)
            self.has_file = True
        return self._file
