"""One hosted partition: its log, its machine, and who waits for either.

Owns the order "append, write, tell the machine, do what it decides". Appends are staged: `written`
comes once for all of a wake-up (`Replicas.write_staged`). Waiting is a heap of futures keyed by
offset (acks=all), and fetches and sessions that are parked here are told of each append: followers
when it is written, consumers when it is visible. There is no purgatory and nothing walks all
partitions.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from barnabas.broker.partitions.watchers import Watchers
from barnabas.errors import KafkaError, NotEnoughReplicasAfterAppend, NotLeaderOrFollower
from barnabas.replication.partition import Advance, Effect, FollowerFetch
from barnabas.replication.replica_selector import InSync

if TYPE_CHECKING:
    from barnabas.broker.fetching.parked_fetch import Watcher
    from barnabas.cluster.controller_requests import IsrProposal
    from barnabas.replication.partition import Partition
    from barnabas.storage.append_result import AppendResult
    from barnabas.storage.log import Log
    from barnabas.types import FileSlice, TopicPartition

_FEW_WAITING = 100
_LEVEL_FOR_MS = 1000  # how exactly it is known since when a follower has had everything


class Replica:
    """A partition that this broker hosts."""

    __slots__ = (
        "_dirty",
        "_fetches",
        "_followers",
        "_is_dirty",
        "_moved",
        "_next_ticket",
        "_parked",
        "_propose",
        "_stopped_by",
        "_sweep_at",
        "_synced",
        "_told_bytes",
        "_unseen_bytes",
        "_waiting",
        "adding",
        "flush",
        "log",
        "partition",
    )

    def __init__(
        self,
        log: Log,
        partition: Partition,
        dirty: list[Replica],
        propose: Callable[[IsrProposal], None],
    ) -> None:
        """`dirty` collects the replicas that have something to be written; `propose` takes what the
        leader wants the controller to write."""
        self.log = log
        self.partition = partition
        self._dirty = dirty
        self._propose = propose
        self._is_dirty = False
        self._waiting: list[tuple[int, int, bool, asyncio.Future[None]]] | None = None
        self._sweep_at = _FEW_WAITING  # how many make it worth to look for those who gave up
        self._next_ticket = 0  # keeps equal offsets apart in the heap, in order of arrival
        self._parked: Watchers | None = None
        self._followers: Watchers | None = None
        self._fetches: dict[int, FollowerFetch] | None = None  # each follower's last one
        self._moved: asyncio.Event | None = None
        self._stopped_by: KafkaError | None = None
        self._unseen_bytes = 0  # appended, and not yet below the high watermark
        self._told_bytes = 0  # of those, what the followers have been told of
        self.flush: asyncio.Task[None] | None = None
        """The one under way, which may take several syncs: what is appended during one counts
        after the next."""
        self._synced: asyncio.Future[None] | None = None
        self.adding: tuple[int, ...] = ()
        """As the leader: on which brokers replicas are still being made (KIP-455)."""

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

    # --- append ----------------------------------------------------------------------------------

    def append(self, records: memoryview, wall_ms: int, is_unseen: bool = False) -> AppendResult:
        """Stage a producer's batch as the leader; raises a KafkaError row, OSError, or Doubt if it
        `is_unseen` and its header may lie.

        It counts, and `records` may be forgotten, after `written`.
        """
        self._will_write()
        result = self.log.append(records, self.partition.leader_epoch, wall_ms, is_unseen)
        if not result.is_duplicate:
            self._unseen_bytes += result.size_bytes
        return result

    def append_own(self, records: memoryview, wall_ms: int) -> AppendResult:
        """Stage a batch of this broker's coordinator; otherwise as `append`."""
        self._will_write()
        result = self.log.append_own(records, self.partition.leader_epoch, wall_ms)
        self._unseen_bytes += result.size_bytes
        return result

    def append_control(self, records: memoryview, wall_ms: int) -> AppendResult:
        """Stage a transaction's marker; otherwise as `append`."""
        self._will_write()
        result = self.log.append_control(records, self.partition.leader_epoch, wall_ms)
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
        if self._followers:
            self._followers.notify(self._unseen_bytes - self._told_bytes)
            self._told_bytes = self._unseen_bytes

    def counted(self, now_ms: int, end_offset: int) -> None:
        """What is below counts for the high watermark: written, and flushed where that is asked."""
        if self._fetches:
            self._keep_level(now_ms)
        effects = self.partition.appended(end_offset, now_ms)
        if effects:
            self.carry_out(effects)

    async def flushed(self, offset: int) -> None:
        """Return when everything below `offset` is on disk, as far as a flush was asked for."""
        while self.flush is not None and self.log.recovery_point < offset:
            if self._synced is None:
                self._synced = asyncio.get_running_loop().create_future()
            await asyncio.shield(self._synced)

    def sync_ended(self) -> None:
        """One of a flush's syncs has ended; whoever waits for the disk looks again."""
        synced, self._synced = self._synced, None
        if synced is not None:
            synced.set_result(None)

    # --- read ------------------------------------------------------------------------------------

    def read(
        self, offset: int, max_bytes: int, at_least_one_batch: bool, committed: bool = False
    ) -> list[FileSlice]:
        """Whole batches from the one with `offset` on, below the high watermark (CO-7).

        With `committed` below the last stable offset (CO-6).
        """
        end = self.last_stable_offset if committed else self.partition.high_watermark
        return self.log.read(offset, max_bytes, end, at_least_one_batch)

    def park(self, watcher: Watcher) -> None:
        """Have a consumer told of what becomes visible."""
        if self._parked is None:
            self._parked = Watchers()
        self._parked.park(watcher)

    def unpark(self, watcher: Watcher) -> None:
        if self._parked is not None:
            self._parked.unpark(watcher)

    @property
    def followers(self) -> Watchers:
        """Where followers park: they are told of what is written, visible or not."""
        if self._followers is None:
            self._followers = Watchers()
        return self._followers

    # --- as leader -------------------------------------------------------------------------------

    def fetched(self, fetch: FollowerFetch, now_ms: int) -> None:
        """A follower has everything below the offset that it asks for (RE-5).

        Raises NotLeaderOrFollower, FencedLeaderEpoch and UnknownLeaderEpoch, as the machine does.
        """
        self.carry_out(self.partition.fetched(fetch, now_ms))
        if self._fetches is None:
            self._fetches = {}
        self._fetches[fetch.replica] = fetch
        if self._moved is not None:
            self._moved.set()

    def in_sync(self) -> list[InSync]:
        """The followers in the ISR that have fetched in this epoch."""
        partition, fetches = self.partition, self._fetches or {}
        return [
            InSync(
                broker_id,
                fetches[broker_id].log_start_offset,
                partition.follower_end_offset(broker_id),
                partition.caught_up_at_ms(broker_id),
            )
            for broker_id in partition.isr
            if broker_id in fetches
        ]

    def _keep_level(self, now_ms: int) -> None:
        """Before the log's end moves on: who was level with it was so when it asked last.

        An idle partition is not in its followers' requests, so nothing else would tell the machine;
        but it is in their sessions, and as in Kafka a session's request speaks for all of them. Who
        has fallen silent since gets no new time to lag in.
        """
        partition = self.partition
        for replica, fetch in (self._fetches or {}).items():
            if not (
                fetch.offset == partition.log_end_offset
                and replica in partition.isr
                and now_ms - partition.caught_up_at_ms(replica) > _LEVEL_FOR_MS
                and partition.live.get(replica) in (-1, fetch.broker_epoch)
            ):
                continue
            requested_at_ms = self._followers.requested_at_ms(replica) if self._followers else None
            if requested_at_ms is not None and requested_at_ms > partition.caught_up_at_ms(replica):
                self.carry_out(partition.fetched(fetch, requested_at_ms))

    def carry_out(self, effects: Sequence[Effect]) -> None:
        """Do what the machine has decided."""
        for effect in effects:
            if effect.__class__ is Advance:
                self._high_watermark_rose()
            elif not isinstance(effect, Advance):
                self._propose(effect.proposal)

    def wait_for(self, offset: int, *, is_strict: bool = False) -> asyncio.Future[None]:
        """Done when the high watermark has reached `offset`; fails when leadership is lost.

        If it `is_strict`, NotEnoughReplicasAfterAppend too, when the ISR falls below the minimum.
        """
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if self._stopped_by is not None:
            future.set_exception(self._stopped_by)
            return future
        if offset <= self.partition.high_watermark:  # it may have risen since it was looked at
            future.set_result(None)
            return future
        if self._waiting is None:
            self._waiting = []
        elif len(self._waiting) >= self._sweep_at:
            self._sweep()
        heapq.heappush(self._waiting, (offset, self._next_ticket, is_strict, future))
        self._next_ticket += 1
        return future

    def _sweep(self) -> None:
        """Forget who has given up: while the watermark stands still nothing else would."""
        self._waiting = [each for each in self._waiting or () if not each[3].done()]
        heapq.heapify(self._waiting)
        self._sweep_at = max(_FEW_WAITING, 2 * len(self._waiting))

    async def low_watermark_moves(self, timeout_s: float) -> None:
        """Return when a follower has fetched, or leadership is lost; or after that time."""
        if self._moved is None or self._moved.is_set():
            self._moved = asyncio.Event()
        try:
            async with asyncio.timeout(timeout_s):
                await self._moved.wait()
        except TimeoutError:
            return

    def log_start_moved(self) -> None:
        """The log begins elsewhere now (retention, DeleteRecords): readers and followers are told
        at once."""
        self.partition.log_start_offset = self.log.log_start_offset
        self.wake_watchers()

    # --- as follower -----------------------------------------------------------------------------

    def copied(self, size_bytes: int, before: int, effects: Sequence[Effect]) -> None:
        """So many bytes were written where the log ended `before`, and the leader's watermark is
        known: consumers read here too."""
        self._unseen_bytes += size_bytes
        if effects:
            self.carry_out(effects)
            if before <= self.partition.high_watermark < self.log.log_end_offset:
                self._unseen_bytes = size_bytes  # what came before can be seen now

    # --- roles -----------------------------------------------------------------------------------

    def leads(self) -> None:
        """This broker leads the partition, in a new epoch."""
        self._stopped_by = None
        self._fetches = None
        self._unseen_bytes = self._told_bytes = 0
        self.partition.log_start_offset = self.log.log_start_offset
        self.wake_watchers()

    def isr_changed(self) -> None:
        """Whoever waits for all of the ISR cannot be promised anything by one that is too small.

        Followers' sessions look here when they are asked next: who is out of it may join.
        """
        if self._followers is not None:
            self._followers.notify(0)
        if not self._waiting or self.partition.has_enough_in_sync():
            return
        error = NotEnoughReplicasAfterAppend(
            f"{self.topic_partition}: written, but the ISR shrank below min.insync.replicas"
        )
        strict = [future for _, _, is_strict, future in self._waiting if is_strict]
        self._waiting = [each for each in self._waiting if not each[2]]
        heapq.heapify(self._waiting)
        for future in strict:
            if not future.done():
                future.set_exception(error)

    def stopped(self, reason: KafkaError | None = None) -> None:
        """This broker no longer leads, hosts or can reach it: whoever waits must learn so."""
        error = self._stopped_by = reason or NotLeaderOrFollower(
            f"{self.topic_partition} is no longer led by this broker"
        )
        self._fetches = None
        self._unseen_bytes = self._told_bytes = 0
        waiting, self._waiting = self._waiting, None
        for *_, future in waiting or ():
            if not future.done():
                future.set_exception(error)
        if self._moved is not None:
            self._moved.set()
        self.wake_watchers()

    def wake_watchers(self) -> None:
        """Something changed that readers must see at once (leadership, deletion, log start)."""
        if self._parked is not None:
            self._parked.wake()
        if self._followers is not None:
            self._followers.wake()

    def _high_watermark_rose(self) -> None:
        high_watermark = self.partition.high_watermark
        while self._waiting and self._waiting[0][0] <= high_watermark:
            future = heapq.heappop(self._waiting)[3]
            if not future.done():
                future.set_result(None)
        visible_bytes = self._unseen_bytes or 1  # appended before anybody counted: there is some
        if high_watermark >= self.log.log_end_offset:
            self._unseen_bytes = self._told_bytes = 0
        if self._parked is not None:
            self._parked.notify(visible_bytes)
        if self._followers is not None:
            self._followers.notify(0)
