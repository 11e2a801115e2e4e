"""Writes the appends that were staged in one wake-up of the event loop, partition by partition.

    append --> dirty --> write --+-- no flush required --> it counts
                                 +-- a flush is due     --> sync in a thread --> it counts

A flush that `flush.messages` or `flush.ms` requires (ST-10) runs while appends continue. Each log
has at most one flush at a time, which syncs again and again until there is nothing left to flush.
The records covered by a sync count as soon as the sync is done, so a steady stream of appends does
not delay acknowledgements.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol

from barnabas.broker.runtime.disk_threads import run_in
from barnabas.clock import Clock

if TYPE_CHECKING:
    from barnabas.broker.partitions.replica import Replica
    from barnabas.broker.runtime.disk_threads import DiskThreads

_AGAIN_AFTER_S = 0.1  # seconds until the next attempt if the sync lacks a descriptor


class Hosted(Protocol):
    """The part of `Replicas` that is needed for writing and flushing."""

    threads: DiskThreads

    def hosts(self, replica: Replica) -> bool: ...

    def is_short_of_descriptors(self, error: OSError) -> bool: ...


class StagedWrites:
    """The staged appends of one broker. `dirty` contains the replicas that have staged data."""

    __slots__ = ("_clock", "_replicas", "_soon", "dirty")

    def __init__(self, replicas: Hosted, clock: Clock) -> None:
        self._replicas = replicas
        self._clock = clock
        self._soon: asyncio.Handle | None = None
        self.dirty: list[Replica] = []

    def write(self) -> None:
        """Write the appends of this wake-up, and count them towards the high watermark.

        If a write fails, the partition goes offline together with its directory, and its requests
        fail.
        """
        dirty = self.dirty[:]
        self.dirty.clear()
        now_ms = self._clock.monotonic_ms()
        replicas = self._replicas
        for replica in dirty:
            if not replicas.hosts(replica):
                # deleted or lost with its directory, so no request is waiting for it
                continue
            try:
                replica.write_staged()
            except OSError as error:
                replica.fail(error)
                continue
            if replica.flush is not None:
                continue  # records appended during a flush count after the next flush
            if replica.log.due_flush(now_ms):
                self.start_flush(replica)
            # A follower does not count anything, because it gets the high watermark from the
            # leader's response (RE-6).
            elif replica.partition.is_leader:
                replica.count_up_to(now_ms, replica.log.log_end_offset)

    def write_soon(self) -> None:
        """Schedule a write of appends that no request made, before the event loop waits again."""
        if self.dirty and self._soon is None:
            # Write after the callbacks that are due have run, because they may append more.
            self._soon = asyncio.get_running_loop().call_soon(self._write_now)

    def _write_now(self) -> None:
        self._soon = None
        self.write()

    def start_flush(self, replica: Replica) -> None:
        """Flush the log in a thread. After that, its records count towards the high watermark."""
        if replica.flush is None:
            loop = asyncio.get_running_loop()
            replica.flush = loop.create_task(_flush(replica, self._replicas, self._clock))


async def _flush(replica: Replica, replicas: Hosted, clock: Clock) -> None:
    """Flush the log in a thread. Until the task ends, `replica.flush` refers to it."""
    try:
        while True:
            if not await _sync(replica, replicas):
                await asyncio.sleep(_AGAIN_AFTER_S)
                continue
            if not replica.log.due_flush(clock.monotonic_ms()):
                break
            # Count up to the recovery point rather than up to the log end before the sync, because
            # the log may have been truncated since then.
            _count(replica, replicas, clock, replica.log.recovery_point)
            replica.sync_ended()
    except OSError as error:
        replica.flush = None
        replica.fail(error)
    else:
        replica.flush = None
        # Records that are appended later do not have to be on disk yet.
        _count(replica, replicas, clock, replica.log.log_end_offset)
    replica.sync_ended()


async def _sync(replica: Replica, replicas: Hosted) -> bool:
    """Sync the log, or return False if no descriptor was left. Raises OSError."""
    try:
        await run_in(replicas.threads.flushes, replica.log.take_flush())
    except OSError as error:
        if not replicas.is_short_of_descriptors(error):
            raise
        return False
    return True


def _count(replica: Replica, replicas: Hosted, clock: Clock, end_offset: int) -> None:
    """Count a leader's log up to `end_offset`, if this has not been done yet."""
    partition = replica.partition
    if not replicas.hosts(replica) or not partition.is_leader:
        return
    if end_offset > partition.log_end_offset:
        replica.count_up_to(clock.monotonic_ms(), end_offset)
