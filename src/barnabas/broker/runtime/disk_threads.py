"""Provides a broker's thread pools for disk access, so that its event loop does not have to wait
for a disk.

    flushes       fsyncs for which acknowledgements wait (`flush.messages`)
    reads         reads outside the page cache, for consumers that are far behind
    background    checkpoints, rolled segments, removals, the cleaner's syncs, coordinators' loads

A busy pool delays only its own duty. For example, six consumers that read from a slow disk must not
make a producer wait. The threads do no computing, and each call releases the GIL. Work without its
own pool, such as a journal commit or recompression, runs in the event loop's default threads.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor
from typing import TypeVar

from barnabas.named_tuple import NamedTuple

T = TypeVar("T")

_FLUSHES = 8  # few disks can handle more at the same time
_READS = 8  # Kafka's num.io.threads
_BACKGROUND = 8  # there are fewer duties than this, so no duty waits for another


class DiskThreads(NamedTuple):
    """The thread pool for each duty. None selects the default threads of the event loop."""

    flushes: Executor | None = None
    reads: Executor | None = None
    background: Executor | None = None

    def close(self) -> None:
        """Let each thread end when its work is done."""
        for pool in self:
            if pool is not None:
                pool.shutdown(wait=False)


LOOP_THREADS = DiskThreads()
"""Runs all duties in the default threads of the event loop, for tools, tests and the simulator."""


def new_disk_threads() -> DiskThreads:
    """Create the thread pools of a broker. Threads are started when they are needed."""
    from concurrent.futures import ThreadPoolExecutor

    return DiskThreads(
        ThreadPoolExecutor(_FLUSHES, "barnabas-flush"),
        ThreadPoolExecutor(_READS, "barnabas-read"),
        ThreadPoolExecutor(_BACKGROUND, "barnabas-background"),
    )


async def run_in(pool: Executor | None, action: Callable[[], T]) -> T:
    """Call a blocking function in a thread of the pool, and return what it returns."""
    return await asyncio.get_running_loop().run_in_executor(pool, action)
