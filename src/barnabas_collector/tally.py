"""A count of losses that is logged now and then, so that the log does not grow with the losses."""

from __future__ import annotations

import logging
import time
from typing import Final

_log = logging.getLogger(__name__)

_EVERY_S: Final = 10.0


class Tally:
    """A count. `what`: the end of a sentence that begins with the number."""

    def __init__(self, what: str) -> None:
        self.total = 0
        self._what = what
        self._logged = 0
        self._next_at_s = -_EVERY_S

    def add(self, count: int, why: str = "") -> None:
        """Warn at once, and then every ten seconds of the sum since."""
        self.total += count
        now_s = time.monotonic()
        if now_s >= self._next_at_s:
            self._next_at_s = now_s + _EVERY_S
            self._log_count(why)

    def log_rest(self) -> None:
        """Warn of the losses not logged yet."""
        if self.total > self._logged:
            self._log_count("")

    def _log_count(self, why: str) -> None:
        self._logged = self.total
        _log.warning("%d %s%s", self.total, self._what, why and f": {why}")
