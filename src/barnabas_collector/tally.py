"""Counts losses and logs the count at intervals, so that many losses do not flood the log."""

from __future__ import annotations

import logging
import time
from typing import Final

_log = logging.getLogger(__name__)

_EVERY_S: Final = 10.0


class Tally:
    """Keeps a count. `what`: the words that follow the number in a log line."""

    def __init__(self, what: str) -> None:
        self.total = 0
        self._what = what
        self._logged = 0
        self._next_at_s = -_EVERY_S

    def add(self, count: int, why: str = "") -> None:
        """Warn immediately, and then every ten seconds with the sum since the last warning."""
        self.total += count
        now_s = time.monotonic()
        if now_s >= self._next_at_s:
            self._next_at_s = now_s + _EVERY_S
            self._log_count(why)

    def log_rest(self) -> None:
        """Warn about the losses not logged yet."""
        if self.total > self._logged:
            self._log_count("")

    def _log_count(self, why: str) -> None:
        self._logged = self.total
        _log.warning("%d %s%s", self.total, self._what, why and f": {why}")
