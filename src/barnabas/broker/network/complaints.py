"""Log lines about what peers do wrong: each once per address and minute, however often it happens.

A client that is set up wrong connects again and again, a few times in a second.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from barnabas.clock import Clock

_AGAIN_AFTER_MS = 60_000
_REMEMBERED = 1000  # addresses and reasons; beyond them the oldest are forgotten


class Complaints:
    """Of one broker."""

    __slots__ = ("_clock", "_log", "_said_at_ms")

    def __init__(self, log: logging.Logger, clock: Clock) -> None:
        self._log = log
        self._clock = clock
        self._said_at_ms: dict[tuple[str, str], int] = {}

    def about(self, address: tuple[str, int], what: str, reason: object) -> None:
        """Warn of a connection from `address` and the reason why it ended."""
        now_ms = self._clock.monotonic_ms()
        key = (address[0], f"{what}{reason}")
        said_at_ms = self._said_at_ms.pop(key, None)
        if said_at_ms is not None and now_ms - said_at_ms < _AGAIN_AFTER_MS:
            self._said_at_ms[key] = said_at_ms
            return
        self._said_at_ms[key] = now_ms
        if len(self._said_at_ms) > _REMEMBERED:
            del self._said_at_ms[next(iter(self._said_at_ms))]
        self._log.warning("%s from %s:%d: %s", what, *address, reason)
