"""Counts losses, and logs the count at intervals so that many losses do not flood the log."""

from __future__ import annotations

import logging
import time
from collections import Counter
from typing import Final

from barnabas.counted import counted

_log = logging.getLogger(__name__)

_EVERY_S: Final = 10.0
_MOST_WHYS: Final = 3
_MOST_KEPT: Final = 100  # the maximum number of reasons


class Tally:
    """Keeps a count. `one` and `several` are the words that follow the number in a log line."""

    def __init__(self, one: str, several: str) -> None:
        self.total = 0
        self._one = one
        self._several = several
        self._logged = 0
        self._whys: Counter[str] = Counter()  # since the last warning
        self._next_at_s = -_EVERY_S

    def add(self, count: int, why: str = "") -> None:
        """Count losses. The first loss is logged as a warning immediately. After that, a warning
        with all reasons since the last one is logged at most every ten seconds.
        """
        self.total += count
        if why and (why in self._whys or len(self._whys) < _MOST_KEPT):
            self._whys[why] += count
        now_s = time.monotonic()
        if now_s >= self._next_at_s:
            self._next_at_s = now_s + _EVERY_S
            self._log_count()

    def log_rest(self) -> None:
        """Warn about any losses that have not been logged."""
        if self.total > self._logged:
            self._log_count()

    def _log_count(self) -> None:
        new = self.total - self._logged
        self._logged = self.total
        shown = self._whys.most_common(_MOST_WHYS)
        parts = [
            why if count == new else f"{why} ({counted(count, 'time')})" for why, count in shown
        ]
        if shown and (others := new - sum(count for _, count in shown)):
            parts.append(f"and {others:,} for other reasons")
        self._whys.clear()
        what = self._one if self.total == 1 else self._several
        _log.warning("%d %s%s", self.total, what, ": " * bool(parts) + "; ".join(parts))
