"""Logs that the brokers cannot be reached, at a limited rate."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Final

_log = logging.getLogger(__name__)

_EVERY_S: Final = 60.0


class Complaint:
    """Logs a new reason immediately and repeats the same reason at most once a minute."""

    def __init__(self, part: str, now_s: Callable[[], float] = time.monotonic) -> None:
        self._part = part
        self._now_s = now_s
        self._last: tuple[str, float] | None = None

    def add(self, why: Exception) -> None:
        """Log that a part is retrying, unless the same reason was logged less than a minute ago."""
        text, now_s = str(why), self._now_s()
        if self._last is not None:
            logged, at_s = self._last
            if text == logged and now_s - at_s < _EVERY_S:
                return
        self._last = text, now_s
        _log.error("%s: retrying until the brokers can be reached: %s", self._part, text)
