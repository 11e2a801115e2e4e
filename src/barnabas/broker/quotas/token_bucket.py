"""A token bucket, Kafka's measure for changes of topics (KIP-599). Pure.

It fills at the limit's rate up to a burst, and may be overdrawn by one request, however large; then
nothing more is admitted until it is not below zero.
"""

from __future__ import annotations

from math import floor

from barnabas.broker.quotas.rate import MAX_THROTTLE_MS, Windows


class TokenBucket:
    """Full at first."""

    __slots__ = ("_at_ms", "_burst_s", "_tokens")

    def __init__(self, windows: Windows) -> None:
        self._burst_s = windows.kept * windows.length_ms / 1_000
        self._tokens: float | None = None
        self._at_ms = 0

    def tokens(self, limit: float, now_ms: int) -> float:
        """How many there are at that rate per second; below zero if overdrawn."""
        burst = self._burst_s * limit
        if self._tokens is None:
            self._tokens = burst
        else:
            self._tokens = min(burst, self._tokens + limit * (now_ms - self._at_ms) / 1_000)
        self._at_ms = now_ms
        return self._tokens

    def take(self, count: float, limit: float, now_ms: int) -> None:
        """Take tokens, whether they are there or not."""
        self._tokens = self.tokens(limit, now_ms) - count

    def throttle_ms(self, limit: float, now_ms: int) -> int:
        """The time until the bucket is overdrawn no longer; 0 if it is not."""
        missing = -self.tokens(limit, now_ms)
        if missing <= 0:
            return 0
        if limit <= 0:
            return MAX_THROTTLE_MS
        return floor(min(missing / limit * 1_000 + 0.5, MAX_THROTTLE_MS))
