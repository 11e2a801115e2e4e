"""A clock that stands where it was set."""

from __future__ import annotations


class SetClock:
    """Stands where it was set."""

    def __init__(self, now_ms: int = 1_700_000_000_000) -> None:
        self.at_ms = now_ms
        self._ahead_ms = 0

    def step(self, by_ms: int) -> None:
        """Set the calendar, forwards or backwards; the monotonic clock goes on."""
        self._ahead_ms += by_ms

    def monotonic_ms(self) -> int:
        return self.at_ms

    def wall_ms(self) -> int:
        return self.at_ms + self._ahead_ms
