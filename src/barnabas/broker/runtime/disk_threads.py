"""A broker's threads that wait for the disk, so that its event loop need not: a pool per duty.

    flushes       fsyncs for which acknowledgements wait (`flush.messages`)
    reads         what is not in the page cache, for consumers that are far behind
    background    checkpoints, rolled segments, removals, the cleaner's syncs, coordinators' loads

A pool that is busy holds up its own duty only: six consumers that read from a slow disk are no
reason to keep a producer waiting. Nothing in them computes; each call releases the GIL. What has no
pool here (a journal's commit, recompression) is left to the loop's own threads.
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


class DiskThreads(NamedTuple):
    """A pool for each duty; None stands for the threads of the loop itself."""

    flushes: Executor | None = None
    reads: Executor | None = None
    background: Executor | None = None

    def close(self) -> None:
        """Let the threads end once they have nothing left to do."""
        for pool in self:
            if pool is not None:
                pool.shutdown(wait=False)


LOOP_THREADS = DiskThreads()
"""The loop's own threads for all duties: in tools and tests, and under virtual time."""


def new_disk_threads() -> DiskThreads:
    """Pools of a broker's own, whose threads are started when they are needed."""
    from concurrent.futures import ThreadPoolExecutor

    return DiskThreads(
        ThreadPoolExecutor(_FLUSHES, "barnabas-flush"),
        ThreadPoolExecutor(_READS, "barnabas-read"),
        ThreadPoolExecutor(_BACKGROUND, "barnabas-background"),
    )


async def run_in(pool: Executor | None, action: Callable[[], T]) -> T:
    """Call what may wait for the disk in a thread of the pool; return or raise as it does."""
    return await asyncio.get_running_loop().run_in_executor(pool, action)
