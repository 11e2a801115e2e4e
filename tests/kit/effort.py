"""How much is tried: `make check` has a minute, others have not; and how slow a machine is."""

from __future__ import annotations

import asyncio
import os
import time

IS_QUICK = bool(os.environ.get("BARNABAS_QUICK"))
IS_SOAK = bool(os.environ.get("BARNABAS_SOAK"))
_SHARE = 5
_SHARE_IN_TEST = 2


def examples(count: int, least: int = 10) -> int:
    """Of so many examples of a property half; in a quick run a fifth, but `least` if there are; in
    `make soak`, which draws new ones each time, five times as many."""
    if IS_SOAK:
        return count * _SHARE
    return min(count, max(least, count // (_SHARE if IS_QUICK else _SHARE_IN_TEST)))


def rounds(count: int, in_soak: int) -> int:
    """So many of a kind: what repeats a test has its marker `repeated`, and more in `make soak`."""
    return in_soak if IS_SOAK else count


def places(count: int) -> range:
    """Of so many places at which something may strike: each, or every fifth in a quick run."""
    return range(0, count, _SHARE if IS_QUICK else 1)


async def count_delays(delays_s: list[float]) -> None:
    """By how much the loop that it runs on comes late, which is the machine's doing.

    Until it is cancelled. What a test says of times holds but for these.
    """
    while True:
        began = time.monotonic()
        await asyncio.sleep(0.01)
        delays_s.append(max(0.0, time.monotonic() - began - 0.02))
