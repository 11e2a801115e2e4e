"""Manages logs that were set aside because other topics have taken their names (`-stray`).

Brokers never open or delete them, because they may be all that remains of a topic deleted by
mistake.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from barnabas.storage.directory import STRAY_SUFFIX

if TYPE_CHECKING:
    from barnabas.storage.files import Files


def strays(files: Files, directory: Path) -> dict[str, int]:
    """Return the sizes (bytes) of the strays, by directory name. Raises OSError."""
    return {
        entry.name: sum(each.size_bytes for each in files.list(directory / entry.name))
        for entry in files.list(directory)
        if entry.is_directory and entry.name.endswith(STRAY_SUFFIX)
    }


def delete_stray(files: Files, path: Path) -> None:
    """Delete a stray with all its files; a crash leaves a stray or nothing. Raises OSError."""
    for entry in files.list(path):
        files.remove(path / entry.name)
    # Remove the directory last; until then, it is a stray with fewer files.
    files.remove_directory(path)
