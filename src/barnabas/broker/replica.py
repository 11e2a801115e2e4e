"""One hosted partition: its log, its machine, and who waits for either.

Owns the order "append, write, tell the machine, do what it decides". Appends are staged: `written`
comes once for all of a wake-up (`Replicas.write_staged`). Waiting is a heap of futures keyed by
offset (acks=all), and fetches and sessions that are parked here are told of each append: there is
no purgatory and nothing walks all partitions.
"""

from __future__ import annotations

import asyncio
import heapq
from typing import TYPE_CHECKING

from barnabas.errors import KafkaError, NotLeaderOrFollower

if TYPE_CHECKING:
    from barnabas.broker.parked_fetch import Watcher
    from barnabas.replication.partition import Partition
    from barnabas.storage.log import AppendResult, Log
    from barnabas.types import FileSlice, TopicPartition


class Replica:
    """A partition that this broker hosts."""

    __slots__ = (
        "_dirty",
        "_is_dirty",
        "_next_ticket",
        "_parked",
        "_stopped_by",
        "_unseen_bytes",
        "_waiting",
        "flush",
        "log",
        "partition",
    )

    def __init__(self, log: Log, partition: Partition, dirty: list[Replica]) -> None:
        """`dirty` collects the replicas that have something to be written."""
        self.log = log
        self.partition = partition
        self._dirty = dirty
        self._is_dirty = False
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] | None = None
        self._next_ticket = 0  # keeps equal offsets apart in the heap, in order of arrival
        self._parked: dict[Watcher, None] | None = None
        self._stopped_by: KafkaError | None = None
        self._unseen_bytes = 0  # appended, and not yet below the high watermark
        self.flush: asyncio.Task[None] | None = None
        """The one under way: what was appended since it began waits for the next."""

    @property
    def topic_partition(self) -> TopicPartition:
        return self.log.topic_partition

    @property
    def high_watermark(self) -> int:
        """The first offset that consumers cannot see."""
        return self.partition.high_watermark

    @property
    def last_stable_offset(self) -> int:
        """The first offset that consumers of committed records cannot see (CO-6)."""
        return self.log.last_stable_offset(self.partition.high_watermark)

    def append(self, records: memoryview, now_ms: int) -> AppendResult:
        """Stage a producer's batch as the leader; raises a KafkaError row, or OSError.

        It counts, and `records` may be forgotten, after `written`.
        """
        self._will_write()
        result = self.log.append(records, self.partition.leader_epoch, now_ms)
        if not result.is_duplicate:
            self._unseen_bytes += result.size_bytes
        return result

    def append_own(self, records: memoryview, now_ms: int) -> AppendResult:
        """Stage a batch of this broker's coordinator; otherwise as `append`."""
        self._will_write()
        result = self.log.append_own(records, self.partition.leader_epoch, now_ms)
        self._unseen_bytes += result.size_bytes
        return result

    def append_control(self, records: memoryview, now_ms: int) -> AppendResult:
        """Stage a transaction's marker; otherwise as `append`."""
        self._will_write()
        result = self.log.append_control(records, self.partition.leader_epoch, now_ms)
        self._unseen_bytes += result.size_bytes
        return result

    def _will_write(self) -> None:
        if not self._is_dirty:
            self._is_dirty = True
            self._dirty.append(self)

    def write_staged(self) -> None:
        """Write what was staged. Raises OSError; the log has failed then."""
        self._is_dirty = False
        self.log.write_staged()

    def counted(self) -> None:
        """The log's end counts for the high watermark: written, and flushed where that is asked."""
        if self.partition.appended(self.log.log_end_offset):
            self._high_watermark_rose()

    async def flushed(self, offset: int) -> None:
        """Return when everything below `offset` is on disk, as far as a flush was asked for."""
        while self.flush is not None and self.log.recovery_point < offset:
            await asyncio.shield(self.flush)

    def read(
        self, offset: int, max_bytes: int, at_least_one_batch: bool, committed: bool = False
    ) -> list[FileSlice]:
        """Whole batches from the one with `offset` on, below the high watermark (CO-7).

        With `committed` below the last stable offset (CO-6).
        """
        end = self.last_stable_offset if committed else self.partition.high_watermark
        return self.log.read(offset, max_bytes, end, at_least_one_batch)

    def wait_for(self, offset: int) -> asyncio.Future[None]:
        """Done when the high watermark has reached `offset`; fails when leadership is lost."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if self._stopped_by is not None:
            future.set_exception(self._stopped_by)
            return future
        if self._waiting is None:
            self._waiting = []
        heapq.heappush(self._waiting, (offset, self._next_ticket, future))
        self._next_ticket += 1
        return future

    def park(self, watcher: Watcher) -> None:
        if self._parked is None:
            self._parked = {}
        self._parked[watcher] = None

    def unpark(self, watcher: Watcher) -> None:
        if self._parked is not None:
            self._parked.pop(watcher, None)

    def leads(self) -> None:
        """This broker leads the partition, in a new epoch."""
        self._stopped_by = None
        self.wake_watchers()

    def stopped(self, reason: KafkaError | None = None) -> None:
        """This broker no longer leads, hosts or can reach it: whoever waits must learn so."""
        error = self._stopped_by = reason or NotLeaderOrFollower(
            f"{self.topic_partition} is no longer led by this broker"
        )
        waiting, self._waiting = self._waiting, None
        for _, _, future in waiting or ():
            if not future.done():
                future.set_exception(error)
        self.wake_watchers()

    def wake_watchers(self) -> None:
        """Something changed that readers must see at once (leadership, deletion, log start)."""
        for watcher in list(self._parked or ()):
            watcher.wake()

    def _high_watermark_rose(self) -> None:
        high_watermark = self.partition.high_watermark
        while self._waiting and self._waiting[0][0] <= high_watermark:
            future = heapq.heappop(self._waiting)[2]
            if not future.done():
                future.set_result(None)
        visible_bytes, self._unseen_bytes = self._unseen_bytes, 0
        if self._parked:
            for watcher in list(self._parked):
                watcher.told(visible_bytes)
