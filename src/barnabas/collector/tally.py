"""A count of losses that is told now and then: a log must not grow with what it complains of."""

from __future__ import annotations

import logging
import time
from typing import Final

_log = logging.getLogger(__name__)

_EVERY_S: Final = 10.0


class Tally:
    """`what`: the end of a sentence that begins with a number."""

    def __init__(self, what: str) -> None:
        self.total = 0
        self._what = what
        self._told = 0
        self._next_at_s = -_EVERY_S

    def add(self, count: int, why: str = "") -> None:
        """Warn at once, and then of what has come together every ten seconds."""
        self.total += count
        now_s = time.monotonic()
        if now_s >= self._next_at_s:
            self._next_at_s = now_s + _EVERY_S
            self._tell(why)

    def tell_all(self) -> None:
        """Warn of what was not told yet."""
        if self.total > self._told:
            self._tell("")

    def _tell(self, why: str) -> None:
        self._told = self.total
        _log.warning("%d %s%s", self.total, self._what, why and f": {why}")
