"""Follows a log as it grows and is rotated: `tail -F` into the collector."""

from __future__ import annotations

from pathlib import Path

from barnabas_collector.rotated_log import QUIET_S, RotatedLog
from barnabas_pipeline.collector import Collected, Collector


class Follower:
    """One path, polled. Use it as a context manager."""

    def __init__(self, collector: Collector, path: Path, *, quiet_s: float = QUIET_S) -> None:
        """`quiet_s`: how long nothing must be written to a rotated file before it is closed.

        Raises `ConfigError` if the file cannot be read.
        """
        self._collector = collector
        self._log = RotatedLog(path, collector.registry, quiet_s=quiet_s)

    def poll(self) -> Collected:
        """Send the lines appended since; returns at once if there are none."""
        return self._collector.send(self._log.portions())

    def __enter__(self) -> Follower:
        return self

    def __exit__(self, *_: object) -> None:
        self._log.close()
