"""Provides the directory for an embedded broker's data: a given or a temporary directory.

A temporary directory is removed by `remove`, and otherwise when its owner is collected or the
process ends, so that a broker that was not closed leaves nothing behind. A forked process never
removes the directory of its parent.

Its files need not survive a power failure, so they are not synced. Written data still survives the
end of the process, however it ends. On a busy disk the syncs during a broker's start and stop take
ten times as long as everything else.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from pathlib import Path

from barnabas.storage.files import OsFiles


class DataDirectory:
    """`given` is the directory that keeps the data and is never removed; None: a temporary
    directory.
    """

    def __init__(self, given: Path | None) -> None:
        self._given = given
        self._temporary: Path | None = None
        self._removal: weakref.finalize[[Path, int], DataDirectory] | None = None

    @property
    def path(self) -> Path | None:
        """The path; None for a temporary directory that has not been created or has been
        removed.
        """
        return self._given or self._temporary

    @property
    def is_temporary(self) -> bool:
        return self._given is None

    def make(self) -> Path:
        """Return the directory; a temporary directory is created unless it exists."""
        if self._given is not None:
            return self._given
        if self._temporary is None:
            self._temporary = Path(tempfile.mkdtemp(prefix="barnabas-"))
            # Runs when the owner is collected, and when the interpreter exits.
            self._removal = weakref.finalize(self, _remove, self._temporary, os.getpid())
        return self._temporary

    def remove(self) -> None:
        """Remove a temporary directory; do nothing to a given one."""
        if self._removal is not None:
            self._removal()
            self._removal = self._temporary = None


class UnsyncedFiles(OsFiles):
    """The system's files, without `fsync`, for temporary data."""

    __slots__ = ()

    def write(self, path: Path, data: bytes, *, sync: bool = False) -> None:
        super().write(path, data)

    def sync(self, path: Path) -> None:
        """Do nothing."""


def _remove(directory: Path, process_id: int) -> None:
    # A forked process inherits the finalizer, but not the directory.
    if os.getpid() == process_id:
        shutil.rmtree(directory, ignore_errors=True)
