"""Tracks the progress of loading logs at startup, and allows interrupting it.

After a crash, each log has to be read from its recovery point on, which takes as long as the disk
needs. Operators must be able to follow the progress and to stop the broker. If loading is stopped,
the directory is left in the same state as after another crash.
"""

from __future__ import annotations

import logging
from pathlib import Path

from barnabas.clock import Clock
from barnabas.counted import counted
from barnabas.errors import BarnabasError
from barnabas.named_tuple import NamedTuple
from barnabas.types import TopicPartition

_log = logging.getLogger(__name__)

PRODUCER_EXPIRATION_MS = 24 * 60 * 60 * 1000

_LOG_EVERY_MS = 3_000


class LoadingStopped(BarnabasError):
    """Raised if the broker is stopped before all logs are loaded."""


class Loading:
    """Tracks the loading of logs during one start. Steps that take only a few seconds are not
    logged.
    """

    __slots__ = (
        "_began_ms",
        "_clock",
        "_completed",
        "_count",
        "_current",
        "_directory",
        "_logged_ms",
        "_read_bytes",
        "is_stopped",
    )

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._began_ms = self._logged_ms = clock.monotonic_ms()
        self._directory = Path()
        self._current: TopicPartition | None = None
        self._completed = self._count = self._read_bytes = 0
        self.is_stopped = False
        """Whether loading should stop. This can be set at any time, even in a signal handler.

        The next step then raises LoadingStopped.
        """

    def begin(self, directory: Path, count: int, *, is_clean: bool) -> None:
        """Start loading a directory that contains `count` logs."""
        self._directory, self._count = directory, count
        self._completed = self._read_bytes = 0
        if not is_clean and count:
            _log.info(
                "recovering %s from %s since no clean shutdown file was found",
                counted(count, "log"),
                directory,
            )

    def opening(self, topic_partition: TopicPartition) -> None:
        """Start loading a log. The previous log has been loaded."""
        if self._current is not None:
            self._completed += 1
        self._current = topic_partition
        self._look()

    def read(self, size_bytes: int) -> None:
        """Count the bytes that have been read from the log."""
        self._read_bytes += size_bytes
        self._look()

    def end(self) -> None:
        """Finish a directory whose logs have all been loaded."""
        took_ms = self._clock.monotonic_ms() - self._began_ms
        if took_ms >= _LOG_EVERY_MS:
            _log.info(
                "loaded %s from %s in %d ms", counted(self._count, "log"), self._directory, took_ms
            )
        self._current = None

    def _look(self) -> None:
        # Between two steps, the files are in the same state as after a crash. The next start loads
        # the logs again.
        if self.is_stopped:
            raise LoadingStopped(
                f"stopped while loading logs: {self._completed}/{self._count} logs in "
                f"{self._directory} were completed; the next start reloads them"
            )
        now_ms = self._clock.monotonic_ms()
        if now_ms - self._logged_ms >= _LOG_EVERY_MS:
            self._logged_ms = now_ms
            _log.info(
                "loading logs from %s: %d/%d logs completed, at %s, %d MB read",
                self._directory,
                self._completed,
                self._count,
                self._current or "several in parallel",
                self._read_bytes // 1_000_000,
            )


class Start(NamedTuple):
    """Describes what is known about a log before it is opened."""

    is_clean: bool
    """Whether the broker was shut down cleanly."""
    is_scanned: bool = False
    """Whether another process has just recovered the log. Its files are then complete but not
    durable.
    """
    now_ms: int = 0
    """The current wall time. Producers that have been idle for too long by then are removed."""
    recovery_point: int = 0
    log_start_offset: int = 0
    producer_expiration_ms: int = PRODUCER_EXPIRATION_MS
    topic_id: bytes | None = None
    """The topic id that was recorded when the log was created, or None if it is unknown."""
    loading: Loading | None = None
    """Tracks the progress of loading, and raises LoadingStopped if loading was stopped."""
