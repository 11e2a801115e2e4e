"""Computes file stamps, which change when a file is written or replaced. A directory's stamp
changes with any file in it.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

Stamp = tuple[int, int, int]
Stamps = tuple[Stamp | None, ...]


def stamps_of(paths: Iterable[str]) -> Stamps:
    """Return a stamp for each file, or None if the file cannot be read."""
    stamps: list[Stamp | None] = []
    for path in map(Path, paths):
        stamps.append(_stamp(path))
        if path.is_dir():
            stamps += map(_stamp, files_in(path))
    return tuple(stamps)


def files_in(directory: Path) -> list[Path]:
    """Return a directory's files, except hidden ones (temporary or editor files). Raises
    OSError."""
    return sorted(
        path for path in directory.iterdir() if path.is_file() and not path.name.startswith(".")
    )


def _stamp(path: Path) -> Stamp | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_ino, status.st_size
