"""Provides the data directory of an embedded broker: either one given by the caller, or a temporary
one.

A temporary directory is removed by `remove` or, at the latest, when its owner is garbage-collected
or the process ends, so even a broker that was not closed leaves nothing behind. A forked process
never removes its parent's directory.

Files in a temporary directory do not have to survive a power failure, so they are not synced.
(Written data does survive the end of the process, even a kill.) On a busy disk, the syncs at a
broker's start and stop would take ten times as long as everything else.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from pathlib import Path

from barnabas.storage.files import OsFiles


class DataDirectory:
    """Manages a broker's directory. `given` is a directory that is never removed; with None, a
    temporary directory is used.
    """

    def __init__(self, given: Path | None) -> None:
        self._given = given
        self._temporary: Path | None = None
        self._removal: weakref.finalize[[Path, int], DataDirectory] | None = None

    @property
    def path(self) -> Path | None:
        """The path, or None if the temporary directory has not been created yet or has been
        removed.
        """
        return self._given or self._temporary

    @property
    def is_temporary(self) -> bool:
        return self._given is None

    def make(self) -> Path:
        """Return the directory. A temporary directory is created if necessary."""
        if self._given is not None:
            return self._given
        if self._temporary is None:
            self._temporary = Path(tempfile.mkdtemp(prefix="barnabas-"))
            # Runs when the owner is garbage-collected, or the interpreter exits.
            self._removal = weakref.finalize(self, _remove, self._temporary, os.getpid())
        return self._temporary

    def remove(self) -> None:
        """Remove a temporary directory. A given directory is kept."""
        if self._removal is not None:
            self._removal()
            self._removal = self._temporary = None


class UnsyncedFiles(OsFiles):
    """The system's file operations without `fsync`, for temporary data."""

    __slots__ = ()

    def write(self, path: Path, data: bytes, *, sync: bool = False) -> None:
        super().write(path, data)

    def sync(self, path: Path) -> None:
        """Do nothing."""


def _remove(directory: Path, process_id: int) -> None:
    # A forked process inherits the finalizer, but must not remove the directory.
    if os.getpid() == process_id:
        shutil.rmtree(directory, ignore_errors=True)
