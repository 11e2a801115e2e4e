"""What the collector remembers: which files there are, and how far each has been sent.

    {"files": [{"file_id": "9f2c...", "path": "/var/log/access.log", "first_line": "5be1...",
                "device": 64769, "inode": 1311, "generation": 0, "position": 81920, "line": 431}]}

A file is the same one as before if its path and its first line are (a log copied here every
night), or its inode and its first line (a log that was rotated away). Never the first line alone:
two servers' logs may well begin with the same health check.

Written atomically after each portion that the broker has acknowledged. So after a crash the last
portion is sent again, under the same file and positions, by which the pipeline knows it.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import BinaryIO, NamedTuple

from barnabas.errors import ConfigError

_FIRST_LINE_BYTES = 4096


class FileProgress(NamedTuple):
    """One file, and the place up to which it has been sent: `position` bytes, next `line`."""

    file_id: str
    path: str
    first_line: str
    device: int
    inode: int
    generation: int
    position: int
    line: int


class Registry:
    """The known files, kept in a file of our own. One process at a time."""

    def __init__(self, path: Path) -> None:
        """Raises `ConfigError` where the file is not what `save` wrote."""
        self._path = path
        self._files: list[FileProgress] = []
        if path.exists():
            try:
                stored = json.loads(path.read_text("utf-8"))["files"]
                self._files = [FileProgress(**entry) for entry in stored]
            except (ValueError, KeyError, TypeError) as error:
                raise ConfigError(
                    f"{path} does not tell how far files were sent ({error}): remove it, then"
                    " everything is sent once more and recognised as sent twice"
                ) from None

    def find(self, path: Path, file: BinaryIO) -> FileProgress | None:
        """The progress of this open file, from its beginning if it is new; None while empty."""
        file.seek(0)
        beginning = file.readline(_FIRST_LINE_BYTES)
        if not beginning:
            return None
        status = os.fstat(file.fileno())
        found = FileProgress(
            file_id="",
            path=str(path.resolve()),
            first_line=hashlib.sha256(beginning).hexdigest()[:16],
            device=status.st_dev,
            inode=status.st_ino,
            generation=0,
            position=0,
            line=1,
        )
        known = self._known(found)
        if known is None:
            return _named(found)
        if status.st_size < known.position:
            # Cut off and written anew behind the same first line: other lines at old positions.
            return _named(found._replace(generation=known.generation + 1))
        return known._replace(path=found.path, device=found.device, inode=found.inode)

    def save(self, progress: FileProgress) -> None:
        """Remember how far the file has been sent."""
        others = [file for file in self._files if not _same(file, progress)]
        self._files = [*others, progress]
        text = json.dumps({"files": [file._asdict() for file in self._files]}, indent=1)
        temporary = self._path.with_suffix(".new")
        temporary.write_text(text, "utf-8")
        temporary.replace(self._path)

    def lines_sent(self) -> int:
        """The lines of all files up to where they have been sent."""
        return sum(file.line - 1 for file in self._files)

    def _known(self, found: FileProgress) -> FileProgress | None:
        by_path = [file for file in self._files if _same(file, found)]
        by_inode = [
            file
            for file in self._files
            if (file.device, file.inode, file.first_line)
            == (found.device, found.inode, found.first_line)
        ]
        return next(iter(by_path + by_inode), None)


def _same(a: FileProgress, b: FileProgress) -> bool:
    return a.file_id == b.file_id or (a.path, a.first_line) == (b.path, b.first_line)


def _named(file: FileProgress) -> FileProgress:
    identity = f"{file.path}\0{file.first_line}\0{file.generation}"
    return file._replace(
        file_id=hashlib.sha256(identity.encode("utf-8", "surrogateescape")).hexdigest()[:16]
    )
