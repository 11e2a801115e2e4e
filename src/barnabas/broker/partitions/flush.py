"""A flush that was asked for by `flush.messages` or `flush.ms` (ST-10), beside the appends.

One at a time for a log. It goes on as long as more is to be flushed, and each of its syncs lets
count what it has covered, however much was appended meanwhile: a steady stream of other records
holds up no acknowledgement.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol

from barnabas.broker.runtime.disk_threads import run_in

if TYPE_CHECKING:
    from barnabas.broker.partitions.replica import Replica
    from barnabas.broker.runtime.disk_threads import DiskThreads
    from barnabas.clock import Clock

_AGAIN_AFTER_S = 0.1  # without a descriptor to sync with


class Hosted(Protocol):
    """The replicas of a broker (`Replicas`), as far as writes and flushes need them."""

    threads: DiskThreads

    def hosts(self, replica: Replica) -> bool: ...

    def is_short_of_descriptors(self, error: OSError) -> bool: ...


async def flush(replica: Replica, replicas: Hosted, clock: Clock) -> None:
    """Force the log to disk in a thread; `replica.flush` is this task, and None when it ends."""
    try:
        while True:
            if not await _sync(replica, replicas):
                await asyncio.sleep(_AGAIN_AFTER_S)
                continue
            if not replica.log.due_flush(clock.monotonic_ms()):
                break
            # Not what the sync was to cover: the log may have been cut in the meantime.
            _count(replica, replicas, clock, replica.log.recovery_point)
            replica.sync_ended()
    except OSError as error:
        replica.flush = None
        replica.fail(error)
    else:
        replica.flush = None
        # What was appended since need not be on disk.
        _count(replica, replicas, clock, replica.log.log_end_offset)
    replica.sync_ended()


async def _sync(replica: Replica, replicas: Hosted) -> bool:
    """Whether it could be done; not if there was no descriptor for it. OSError."""
    try:
        await run_in(replicas.threads.flushes, replica.log.take_flush())
    except OSError as error:
        if not replicas.is_short_of_descriptors(error):
            raise
        return False
    return True


def _count(replica: Replica, replicas: Hosted, clock: Clock, end_offset: int) -> None:
    """Let a leader's log count up to there, unless it counts already."""
    partition = replica.partition
    if not replicas.hosts(replica) or not partition.is_leader:
        return
    if end_offset > partition.log_end_offset:
        replica.counted(clock.monotonic_ms(), end_offset)
