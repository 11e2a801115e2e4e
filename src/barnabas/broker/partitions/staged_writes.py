"""What a wake-up of the loop has appended: written partition by partition, and then it counts."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from barnabas.broker.partitions.flush import Hosted, flush
from barnabas.clock import Clock

if TYPE_CHECKING:
    from barnabas.broker.partitions.replica import Replica


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
            elif replica.partition.is_leader:
                replica.counted(now_ms, replica.log.log_end_offset)

    def write_soon(self) -> None:
        """Have what was appended outside of a request written, before the loop waits again."""
        if self.dirty and self._soon is None:
            self._soon = asyncio.get_running_loop().call_soon(self._write_now)

    def _write_now(self) -> None:
        self._soon = None
        self.write()

    def start_flush(self, replica: Replica) -> None:
        """Force the log to disk in a thread; it counts for the high watermark when that is done."""
        if replica.flush is None:
            loop = asyncio.get_running_loop()
            replica.flush = loop.create_task(flush(replica, self._replicas, self._clock))
