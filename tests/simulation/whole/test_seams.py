"""The simulated clock: two times, of which one can be set."""

from __future__ import annotations

import asyncio

from simulation.whole.loop import VirtualLoop
from simulation.whole.seams import EPOCH_MS, VirtualClock


def test_a_step_moves_the_calendar_of_one_machine_and_nothing_else() -> None:
    loop = VirtualLoop(0)
    one, other = VirtualClock(loop), VirtualClock(loop, ahead_ms=7)
    seen = []

    async def look() -> None:
        for step_ms in (5000, -90_000, 0):
            one.step(step_ms)
            await asyncio.sleep(1)
            seen.append((one.monotonic_ms(), one.wall_ms() - EPOCH_MS))
            assert other.monotonic_ms() == one.monotonic_ms()
            assert other.wall_ms() == EPOCH_MS + 7 + other.monotonic_ms()

    loop.run_until_complete(look())
    loop.close()
    assert seen == [(1000, 6000), (2000, -83_000), (3000, -82_000)]
