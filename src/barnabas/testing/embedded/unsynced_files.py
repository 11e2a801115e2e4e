"""Files whose owner does not need them after a power cut: those of a temporary directory.

What is written survives the end of the process all the same, however it ends. On a busy disk the
syncs of a broker's start and stop take ten times as long as all the rest.
"""

from __future__ import annotations

from pathlib import Path

from barnabas.storage.files import OsFiles


class UnsyncedFiles(OsFiles):
    """The system's files, without `fsync`."""

    __slots__ = ()

    def write(self, path: Path, data: bytes, *, sync: bool = False) -> None:
        super().write(path, data)

    def sync(self, path: Path) -> None:
        """Do nothing."""
