"""Writes what a wake-up of the loop has appended, partition by partition, and lets it count.

    append --> dirty --> write --+-- no flush asked for --> it counts
                                 +-- a flush is due     --> sync in a thread --> it counts

A flush that `flush.messages` or `flush.ms` asks for (ST-10) runs while appends continue, one at a
time for a log. It lasts as long as more is to be flushed, and each of its syncs lets count what it
has covered, however much was appended meanwhile: a steady stream of other records holds up no
acknowledgement.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol

from barnabas.broker.runtime.disk_threads import run_in
from barnabas.clock import Clock

if TYPE_CHECKING:
    from barnabas.broker.partitions.replica import Replica
    from barnabas.broker.runtime.disk_threads import DiskThreads

_AGAIN_AFTER_S = 0.1  # without a descriptor to sync with


class Hosted(Protocol):
    """The replicas of a broker (`Replicas`), as far as writes and flushes need them."""

    threads: DiskThreads

    def hosts(self, replica: Replica) -> bool: ...

    def is_short_of_descriptors(self, error: OSError) -> bool: ...


class StagedWrites:
    """The appends of one broker; `dirty` collects the replicas with something to be written."""

    __slots__ = ("_clock", "_replicas", "_soon", "dirty")

    def __init__(self, replicas: Hosted, clock: Clock) -> None:
        self._replicas = replicas
        self._clock = clock
        self._soon: asyncio.Handle | None = None
        self.dirty: list[Replica] = []

    def write(self) -> None:
        """Write what this wake-up appended, and let it count.

        A partition whose write fails goes offline with its directory; the request that appended
        sees that its log has failed.
        """
        dirty = self.dirty[:]
        self.dirty.clear()
        now_ms = self._clock.monotonic_ms()
        replicas = self._replicas
        for replica in dirty:
            if not replicas.hosts(replica):
                continue  # deleted since, or lost with its directory: no request waits for it
            try:
                replica.write_staged()
            except OSError as error:
                replica.fail(error)
                continue
            if replica.flush is not None:
                continue  # what is appended during a flush counts after the next one
            if replica.log.due_flush(now_ms):
                self.start_flush(replica)
            # A follower counts nothing: its watermark comes with its leader's answer (RE-6).
            elif replica.partition.is_leader:
                replica.count_up_to(now_ms, replica.log.log_end_offset)

    def write_soon(self) -> None:
        """Have what was appended outside of a request written, before the loop waits again."""
        if self.dirty and self._soon is None:
            # After the callbacks that are due already, which may append more.
            self._soon = asyncio.get_running_loop().call_soon(self._write_now)

    def _write_now(self) -> None:
        self._soon = None
        self.write()

    def start_flush(self, replica: Replica) -> None:
        """Force the log to disk in a thread; it counts for the high watermark when that is done."""
        if replica.flush is None:
            loop = asyncio.get_running_loop()
            replica.flush = loop.create_task(_flush(replica, self._replicas, self._clock))


async def _flush(replica: Replica, replicas: Hosted, clock: Clock) -> None:
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
    """Return whether a sync could be done; False without a descriptor. Raises OSError."""
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
        replica.count_up_to(clock.monotonic_ms(), end_offset)
