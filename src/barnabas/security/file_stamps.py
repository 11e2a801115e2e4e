"""Stamps of files, which change when one is written or replaced; of a directory, any file in it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

Stamp = tuple[int, int, int]
Stamps = tuple[Stamp | None, ...]


def stamps_of(paths: Iterable[str]) -> Stamps:
    """Return a stamp for each file, None for one that cannot be read."""
    stamps: list[Stamp | None] = []
    for path in map(Path, paths):
        stamps.append(_stamp(path))
        if path.is_dir():
            stamps += map(_stamp, files_in(path))
    return tuple(stamps)


def files_in(directory: Path) -> list[Path]:
    """Its files, without hidden ones: those are being written, or an editor's. Raises OSError."""
    return sorted(
        path for path in directory.iterdir() if path.is_file() and not path.name.startswith(".")
    )


def _stamp(path: Path) -> Stamp | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_ino, status.st_size
