"""Provides the machine's clocks, with a wall clock that tests can shift or stop."""

from __future__ import annotations

from barnabas.clock import SystemClock


class InterposedClock(SystemClock):
    """A clock that is `offset_ms` ahead of the machine's clock, or has stopped at `stands_at_ms`.

    Both can be set at any time and in any thread. The monotonic clock is always the machine's
    clock.
    """

    __slots__ = ("_machine_ms", "offset_ms", "stands_at_ms")

    def __init__(self) -> None:
        self._machine_ms = super().wall_ms
        self.offset_ms = 0
        self.stands_at_ms: int | None = None

    def wall_ms(self) -> int:
        stands_at_ms = self.stands_at_ms
        if stands_at_ms is not None:
            return stands_at_ms
        return self._machine_ms() + self.offset_ms
