"""Follows a log as it grows: `tail -F` into the collector.

A log that is rotated away is read to its end under its old name before the new one is opened.
"""

from __future__ import annotations

import os
from pathlib import Path

from barnabas.pipeline.collector import Collected, Collector, open_log


class Follower:
    """One path, polled. Use it as a context manager."""

    def __init__(self, collector: Collector, path: Path) -> None:
        """Raises `ConfigError` where the file cannot be read."""
        self._collector = collector
        self._path = path
        self._file = open_log(path)

    def poll(self) -> Collected:
        """Send what was appended since; returns at once when nothing was."""
        rotated = self._is_rotated()
        sent = self._collector.send_from(self._path, self._file, to_the_end=rotated)
        if rotated:
            self._file.close()
            self._file = open_log(self._path)
        return sent

    def _is_rotated(self) -> bool:
        try:
            there = self._path.stat()
        except FileNotFoundError:
            return False  # between the renaming of the old and the making of the new
        mine = os.fstat(self._file.fileno())
        return (there.st_dev, there.st_ino) != (mine.st_dev, mine.st_ino)

    def __enter__(self) -> Follower:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
