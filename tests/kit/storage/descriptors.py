"""Counts a log's open files: other tests' garbage may close its own at any moment."""

from __future__ import annotations

import os
from pathlib import Path

_DESCRIPTORS = Path("/proc/self/fd")


def open_files_below(directory: Path) -> int:
    """The number of this process's descriptors of files below a directory."""
    return sum(_target(each).startswith(f"{directory}/") for each in _DESCRIPTORS.iterdir())


def _target(descriptor: Path) -> str:
    try:
        return os.readlink(descriptor)
    except FileNotFoundError:  # closed meanwhile, as the one of the listing itself
        return ""
