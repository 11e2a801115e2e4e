"""Lists the rotated files in a directory once for all logs in the directory.

An unchanged directory is not listed again. Otherwise, in a directory with ten thousand logs, each
look at a log would list ten thousand names. An unchanged modification time proves this only if the
time is older than a tick of the file system's clock, because two changes within a tick have the
same time.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from barnabas_collector.log_file import LogFile
from barnabas_collector.siblings import log_names, siblings

_TICK_NS: Final = 100_000_000

Inodes = Mapping[str, int]
"""Maps file names to inodes."""


def is_settled(changed_ns: int) -> bool:
    """Return whether every future change will set a later modification time."""
    return time.time_ns() - changed_ns > _TICK_NS


class Listings:
    def __init__(self) -> None:
        self.held: dict[Path, Mapping[tuple[int, int], LogFile]] = {}  # by log: its open files
        self._known: dict[Path, tuple[int, dict[str, Inodes]]] = {}  # change time; inodes by log

    def rotated_files(self, log: Path) -> dict[str, int]:
        """Return the names and inodes of a log's rotated files, oldest first."""
        directory = log.parent
        try:
            changed_ns = directory.stat().st_mtime_ns
            known = self._known.get(directory)
            if known is not None and known[0] == changed_ns:
                inodes = known[1].get(log.name, {})
            else:
                with os.scandir(directory) as entries:
                    inodes = {entry.name: entry.inode() for entry in entries}
                if is_settled(changed_ns):
                    self._known[directory] = (changed_ns, _by_log(inodes))
        except (PermissionError, FileNotFoundError, NotADirectoryError):
            return {}  # a file may be readable even if its directory is not
        return {name: inodes[name] for name in siblings(log.name, inodes)}


def _by_log(inodes: Inodes) -> dict[str, Inodes]:
    found: dict[str, dict[str, int]] = {}
    for name, inode in inodes.items():
        for log in log_names(name):
            found.setdefault(log, {})[name] = inode
    return dict(found)
