"""Computes stamps of files.

A stamp changes when the file is written or replaced. The stamp of a directory changes when any file
in it changes.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

Stamp = tuple[int, int, int]
Stamps = tuple[Stamp | None, ...]


def stamps_of(paths: Iterable[str]) -> Stamps:
    """Return a stamp for each file. The stamp is None if the file cannot be read."""
    stamps: list[Stamp | None] = []
    for path in map(Path, paths):
        stamps.append(_stamp(path))
        if path.is_dir():
            stamps += map(_stamp, files_in(path))
    return tuple(stamps)


def files_in(directory: Path) -> list[Path]:
    """Return the files in a directory, except hidden files (temporary files and those of editors).

    Raises OSError."""
    return sorted(
        path for path in directory.iterdir() if path.is_file() and not path.name.startswith(".")
    )


def _stamp(path: Path) -> Stamp | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_ino, status.st_size
