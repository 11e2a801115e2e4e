"""Logs that were set aside because their names belong to other topics by now (`-stray`).

No broker opens them, and none deletes them by itself: what they hold may be all that is left of a
topic that was deleted by mistake.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from barnabas.storage.directory import STRAY_SUFFIX

if TYPE_CHECKING:
    from barnabas.storage.files import Files


def strays(files: Files, directory: Path) -> dict[str, int]:
    """The directories of strays by name, with the bytes that they hold. OSError."""
    return {
        entry.name: sum(each.size_bytes for each in files.list(directory / entry.name))
        for entry in files.list(directory)
        if entry.is_directory and entry.name.endswith(STRAY_SUFFIX)
    }


def delete_stray(files: Files, path: Path) -> None:
    """Delete one with all its files, so that a crash leaves a stray or nothing. OSError."""
    for entry in files.list(path):
        files.remove(path / entry.name)
    # The directory last: until then it is a stray with fewer files.
    files.remove_directory(path)
