"""Decides when to log the errors that a client retries: once per cause, then at intervals. Pure.

A cause is a kind of error, together with the group, transactional id or partition that it concerns.
"""

from __future__ import annotations

from collections.abc import Hashable

from barnabas.errors import BarnabasError

MOMENT_MS = 1_000
"""The approximate time to elect and load a coordinator. A shorter failure is not logged."""
_REPEAT_MS = 30_000


class RetryLog:
    """Tracks the failures of one kind of operation that is retried, by subject and cause."""

    def __init__(self, patience_ms: int = 0) -> None:
        """`patience_ms` is the time that an error must persist before it is logged."""
        self._patience_ms = patience_ms
        self._began_ms: dict[Hashable, int] = {}
        self._logged_ms: dict[tuple[Hashable, type[BarnabasError]], int] = {}

    def is_news(self, who: Hashable, kind: type[BarnabasError], now_ms: int) -> bool:
        """Return whether to log this failure. If so, the failure counts as logged."""
        if now_ms - self._began_ms.setdefault(who, now_ms) < self._patience_ms:
            return False
        logged_ms = self._logged_ms.get((who, kind))
        if logged_ms is not None and now_ms - logged_ms < _REPEAT_MS:
            return False
        self._logged_ms[who, kind] = now_ms
        return True

    def over(self, who: Hashable) -> None:
        """Record that `who` has recovered, so that an intermittent error is not logged
        each time.
        """
        self._began_ms.pop(who, None)
