"""Log lines about what peers do wrong: each once per address and minute, however often it happens.

A client that is set up wrong connects again and again, a few times in a second.
"""

from __future__ import annotations

import logging
import time

_AGAIN_AFTER_S = 60.0
_REMEMBERED = 1000  # addresses and reasons; beyond them the oldest are forgotten


class Complaints:
    """Of one broker."""

    __slots__ = ("_log", "_said_at")

    def __init__(self, log: logging.Logger) -> None:
        self._log = log
        self._said_at: dict[tuple[str, str], float] = {}

    def about(self, address: tuple[str, int], what: str, reason: object) -> None:
        """Warn of a connection from `address` and the reason why it ended."""
        now = time.monotonic()
        key = (address[0], f"{what}{reason}")
        said_at = self._said_at.pop(key, None)
        if said_at is not None and now - said_at < _AGAIN_AFTER_S:
            self._said_at[key] = said_at
            return
        self._said_at[key] = now
        if len(self._said_at) > _REMEMBERED:
            del self._said_at[next(iter(self._said_at))]
        self._log.warning("%s from %s:%d: %s", what, *address, reason)
