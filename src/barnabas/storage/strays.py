"""Manages strays (`-stray`), which are logs that were set aside because another topic now has the
same name.

Brokers never open or delete strays, because a stray may be all that is left of a topic that was
deleted by mistake.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from barnabas.storage.directory import STRAY_SUFFIX

if TYPE_CHECKING:
    from barnabas.storage.files import Files


def strays(files: Files, directory: Path) -> dict[str, int]:
    """Return the sizes (bytes) of the strays by directory name. Raises OSError."""
    return {
        entry.name: sum(each.size_bytes for each in files.list(directory / entry.name))
        for entry in files.list(directory)
        if entry.is_directory and entry.name.endswith(STRAY_SUFFIX)
    }


def delete_stray(files: Files, path: Path) -> None:
    """Delete a stray and all its files. After a crash, there is either a stray or nothing. Raises
    OSError.
    """
    for entry in files.list(path):
        files.remove(path / entry.name)
    # Remove the directory last. Until then, it is still a stray, but has fewer files.
    files.remove_directory(path)
