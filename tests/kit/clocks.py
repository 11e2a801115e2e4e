"""Clocks for tests of real brokers: the machine's own, whose calendar a test sets."""

from __future__ import annotations

from barnabas.clock import SystemClock


class SteppedClock(SystemClock):
    """The machine's clock with a calendar that a test moves; monotonic time goes on by itself."""

    __slots__ = ("_ahead_ms",)

    def __init__(self) -> None:
        super().__init__()
        self._ahead_ms = 0

    def step(self, by_ms: int) -> None:
        """Somebody sets the calendar, forwards or backwards."""
        self._ahead_ms += by_ms

    def wall_ms(self) -> int:
        return super().wall_ms() + self._ahead_ms
