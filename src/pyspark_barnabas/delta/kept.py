"""Keeps a table open between the commits of one process, as long as nothing else changes it.

Opening a table reads its log, and finding a query's last commit reads it again. Both take longer
than a commit of a few rows, and neither is necessary if the last version is this process's own.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pyspark_barnabas.delta.progress import Progress

if TYPE_CHECKING:
    from deltalake import DeltaTable

_VERSION_DIGITS: Final = 20  # of a log entry's name

_Identity = tuple[int, int, int]


class Kept:
    """An open table in a local directory, with the progress of its only query.

    Only one thread at a time may use it.
    """

    def __init__(self, directory: str) -> None:
        self._log = Path(directory) / "_delta_log"
        self._table: DeltaTable | None = None
        self._entry: _Identity | None = None
        self.progress = Progress()

    def table(self) -> DeltaTable | None:
        """Return the table, or None if there is none or its log has changed since it was kept."""
        if self._table is None:
            return None
        version = self._table.version()
        # If the entry is the same file and no entry follows it, nobody has committed, or put
        # another table in this place.
        if self._identity(version) != self._entry or self._identity(version + 1) is not None:
            self.drop()
        return self._table

    def keep(self, table: DeltaTable, progress: Progress) -> None:
        """Keep a table to which this process has just committed its next version."""
        from deltalake.exceptions import DeltaError

        expected = table.version() + 1
        self.drop()
        # If this fails, the commit is still valid, and the next one opens the table again.
        with suppress(DeltaError, OSError):
            table.update_incremental()
        entry = self._identity(expected)
        if table.version() == expected and entry is not None:
            self._table, self.progress, self._entry = table, progress, entry

    def drop(self) -> None:
        self._table = self._entry = None

    def _identity(self, version: int) -> _Identity | None:
        try:
            entry = (self._log / f"{version:0{_VERSION_DIGITS}}.json").stat()
        except OSError:
            return None
        return entry.st_ino, entry.st_mtime_ns, entry.st_size
