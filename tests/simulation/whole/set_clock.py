"""A clock that stands where it was set."""

from __future__ import annotations


class SetClock:
    """Stands where it was set."""

    def __init__(self, now_ms: int = 1_700_000_000_000) -> None:
        self.at_ms = now_ms

    def now_ms(self) -> int:
        return self.at_ms

    monotonic_ms = wall_ms = now_ms
