"""Keeps a table open between a process's commits, as long as no other writer changes the table.

Opening a table reads the table's log, and searching for a query's last commit reads the log again.
Each of these takes longer than committing a few rows, and neither is necessary if this process
wrote the last version.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Final

from pyspark_barnabas.delta.progress import Progress

if TYPE_CHECKING:
    from deltalake import DeltaTable

_VERSION_DIGITS: Final = 20  # of a log entry's name

_Identity = tuple[int, int, int]


class Kept:
    """Holds an open table in a local directory, and the progress of the only query that writes to
    it.

    Only one thread at a time may use this object, except that `refresh` may run in another thread.
    """

    def __init__(self, directory: str) -> None:
        self._log = Path(directory) / "_delta_log"
        self._lock = Lock()
        self._table: DeltaTable | None = None
        self._version = -1
        self._entry: _Identity | None = None
        self.progress = Progress()

    def version(self) -> int | None:
        """Return the version of this process's last commit, or None if no table is kept or the log
        has changed since that commit."""
        with self._lock:
            # If the entry is the same file and no entry follows it, nobody has committed or
            # replaced the table.
            if self._table is not None and (
                self._identity(self._version) != self._entry
                or self._identity(self._version + 1) is not None
            ):
                self._table = None
            return None if self._table is None else self._version

    def table(self) -> DeltaTable | None:
        """Return the kept table, or None if no table is kept or its log has changed
        since `keep`.
        """
        self.refresh()
        return None if self.version() is None else self._table

    def keep(self, table: DeltaTable, progress: Progress) -> None:
        """Keep a table after this process has committed a new version of it."""
        with self._lock:
            self._table = None
            self._version = table.version() + 1
            self._entry = self._identity(self._version)
            if self._entry is not None:
                self._table, self.progress = table, progress

    def refresh(self) -> None:
        """Read the last commit into the open table, because the next commit needs it.

        Another thread can do this between batches.
        """
        from deltalake.exceptions import DeltaError

        with self._lock:
            if self._table is None or self._table.version() == self._version:
                return
            # If this fails, the commit remains valid, and the next one reopens the table.
            with suppress(DeltaError, OSError):
                self._table.update_incremental()
            if self._table.version() != self._version:
                self._table = None

    def _identity(self, version: int) -> _Identity | None:
        try:
            entry = (self._log / f"{version:0{_VERSION_DIGITS}}.json").stat()
        except OSError:
            return None
        return entry.st_ino, entry.st_mtime_ns, entry.st_size
