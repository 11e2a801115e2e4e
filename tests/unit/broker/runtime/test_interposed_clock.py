"""The clock that a test may move: the wall clock alone."""

from __future__ import annotations

from barnabas.broker.runtime.interposed_clock import InterposedClock
from barnabas.clock import SystemClock

DAY_MS = 86_400_000


def test_tk_4_the_wall_clock_moves_and_stands_still_and_comes_back() -> None:
    clock, machine = InterposedClock(), SystemClock()
    clock.offset_ms = DAY_MS
    assert clock.wall_ms() >= machine.wall_ms() + DAY_MS - 1000
    clock.stands_at_ms = 5
    assert clock.wall_ms() == clock.wall_ms() == 5
    assert clock.monotonic_ms() <= machine.monotonic_ms() <= clock.monotonic_ms()
    clock.stands_at_ms, clock.offset_ms = None, 0
    assert machine.wall_ms() <= clock.wall_ms() + 1000
