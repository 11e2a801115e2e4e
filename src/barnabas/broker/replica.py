"""One hosted partition: its log, its machine, and who waits for either.

Owns the order "append, tell the machine, do what it decides". Waiting is a heap of futures keyed
by offset (acks=all) and a list of parked fetches that are told of each append's bytes; there is no
purgatory and nothing walks all partitions.
"""

from __future__ import annotations

import asyncio
import heapq
from typing import TYPE_CHECKING

from barnabas.errors import NotLeaderOrFollower

if TYPE_CHECKING:
    from barnabas.broker.parked_fetch import ParkedFetch
    from barnabas.replication.partition import Partition
    from barnabas.storage.log import AppendResult, Log
    from barnabas.types import FileSlice, TopicPartition


class Replica:
    """A partition that this broker hosts."""

    __slots__ = ("_next_ticket", "_parked", "_unseen_bytes", "_waiting", "log", "partition")

    def __init__(self, log: Log, partition: Partition) -> None:
        self.log = log
        self.partition = partition
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        self._next_ticket = 0  # keeps equal offsets apart in the heap, in order of arrival
        self._parked: dict[ParkedFetch, None] = {}
        self._unseen_bytes = 0  # appended, and not yet below the high watermark

    @property
    def topic_partition(self) -> TopicPartition:
        return self.log.topic_partition

    @property
    def high_watermark(self) -> int:
        """The first offset that consumers cannot see."""
        return self.partition.high_watermark

    def append(self, records: memoryview, now_ms: int) -> AppendResult:
        """Append a producer's batches as the leader; raises a KafkaError row, or OSError."""
        result = self.log.append(records, self.partition.leader_epoch, now_ms)
        if not result.is_duplicate:
            self._unseen_bytes += result.size_bytes
            if self.partition.appended(self.log.log_end_offset):
                self._high_watermark_rose()
        return result

    def read(self, offset: int, max_bytes: int, at_least_one_batch: bool) -> list[FileSlice]:
        """Whole batches from the one with `offset` on, below the high watermark (CO-7)."""
        return self.log.read(offset, max_bytes, self.high_watermark, at_least_one_batch)

    def wait_for(self, offset: int) -> asyncio.Future[None]:
        """Done when the high watermark has reached `offset`; fails when leadership is lost."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, (offset, self._next_ticket, future))
        self._next_ticket += 1
        return future

    def park(self, fetch: ParkedFetch) -> None:
        self._parked[fetch] = None

    def unpark(self, fetch: ParkedFetch) -> None:
        self._parked.pop(fetch, None)

    def stopped(self) -> None:
        """This broker no longer leads or hosts it: whoever waits must learn so."""
        waiting, self._waiting = self._waiting, []
        for _, _, future in waiting:
            if not future.done():
                future.set_exception(
                    NotLeaderOrFollower(f"{self.topic_partition} is no longer led by this broker")
                )
        for fetch in list(self._parked):
            fetch.wake()

    def _high_watermark_rose(self) -> None:
        high_watermark = self.partition.high_watermark
        while self._waiting and self._waiting[0][0] <= high_watermark:
            future = heapq.heappop(self._waiting)[2]
            if not future.done():
                future.set_result(None)
        visible_bytes, self._unseen_bytes = self._unseen_bytes, 0
        for fetch in list(self._parked):
            fetch.told(visible_bytes)
