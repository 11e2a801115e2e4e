"""Logs reads that fail, once a minute for each partition, however often it is read.

A client that meets a damaged batch asks again at once, and so do all others at that place.
"""

from __future__ import annotations

import logging
from typing import Final

from barnabas.clock import Clock
from barnabas.types import TopicPartition

_log = logging.getLogger(__name__)

_MINUTE_MS: Final = 60_000


class ReadFailures:
    """Serves one broker."""

    __slots__ = ("_clock", "_last")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._last: dict[TopicPartition, tuple[int, int]] = {}  # logged at; left out since

    def on_failure(self, what: str, name: TopicPartition, error: Exception) -> None:
        """Log that a read of the partition failed, unless it was logged a moment ago."""
        now_ms = self._clock.monotonic_ms()
        before_ms, left_out = self._last.get(name, (now_ms - _MINUTE_MS, 0))
        if now_ms - before_ms < _MINUTE_MS:
            self._last[name] = before_ms, left_out + 1
            return
        more = f" ({left_out} more in the last minute)" if left_out else ""
        self._last = {
            each: last for each, last in self._last.items() if now_ms - last[0] < _MINUTE_MS
        }
        self._last[name] = now_ms, 0
        _log.error("%s of %s failed: %s%s", what, name, error, more)
