"""Where a broker's calls wait for its disk, apart from its loop: threads, in lanes of their own.

    flushes       fsyncs for which acknowledgements wait (`flush.messages`)
    reads         what is not in the page cache, for consumers that are far behind
    background    checkpoints, rolled segments, removals, the cleaner's syncs, coordinators' loads

A lane that is full holds up only its own: six consumers that read from a slow disk are no reason to
keep a producer waiting. Nothing in them computes; each call releases the GIL. What has no lane here
(a journal's commit, compressing anew) is left to the loop's own threads.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor
from typing import NamedTuple, TypeVar

T = TypeVar("T")

_FLUSHES = 8  # a disk that takes more at once is rare
_READS = 8  # Kafka's num.io.threads
_BACKGROUND = 8  # more than there are duties that wait for a disk: none waits for another


class Lanes(NamedTuple):
    """One for each kind of waiting; None stands for the threads of the loop itself."""

    flushes: Executor | None = None
    reads: Executor | None = None
    background: Executor | None = None

    def close(self) -> None:
        """Let the threads end, once they have nothing left to do."""
        for lane in self:
            if lane is not None:
                lane.shutdown(wait=False)


OF_THE_LOOP = Lanes()
"""All of them are the loop's own threads: for tools and tests, and under virtual time."""


def threads() -> Lanes:
    """Threads of a broker's own, each started when it is needed."""
    from concurrent.futures import ThreadPoolExecutor

    return Lanes(
        ThreadPoolExecutor(_FLUSHES, "barnabas-flush"),
        ThreadPoolExecutor(_READS, "barnabas-read"),
        ThreadPoolExecutor(_BACKGROUND, "barnabas-background"),
    )


async def in_lane(lane: Executor | None, action: Callable[[], T]) -> T:
    """What an action returns or raises, which may wait for the disk."""
    return await asyncio.get_running_loop().run_in_executor(lane, action)
