"""Implements a hosted partition, with its log, its state machine, and the requests that wait for
them.

The order is always "append, write, notify the machine, apply its decision". Appends are staged, and
are written once per wake-up of the loop (`Replicas.write_staged`). Requests with acks=all wait in a
heap of futures that is ordered by offset. Parked fetches and sessions are notified of each append.
Followers are notified when the data is written, and consumers when it becomes visible. There is no
purgatory, and nothing has to iterate over all partitions.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Protocol

from barnabas.errors import KafkaError, NotEnoughReplicasAfterAppend, NotLeaderOrFollower
from barnabas.replication.partition import Advance, Effect, Partition
from barnabas.shielded import shielded

if TYPE_CHECKING:
    from barnabas.broker.partitions.alter_partition_queue import AlterPartitionQueue
    from barnabas.broker.partitions.traffic import Traffic
    from barnabas.clock import Clock
    from barnabas.cluster.controller_requests import IsrAnswer, IsrProposal
    from barnabas.replication.follower_state import FollowerFetch
    from barnabas.storage.append_result import AppendResult
    from barnabas.storage.log import Log
    from barnabas.types import TopicPartition

_FEW_WAITING = 100
_NOT_LED = -1


class Watcher(Protocol):
    """A parked fetch, or a partition in a session. It is notified when the replica changes."""

    def notify(self, appended_bytes: int) -> None:
        """Count bytes that can now be read."""
        ...

    def wake(self) -> None:
        """React to a change that a reader must learn about immediately, such as a deletion."""
        ...

    def requested_at_ms(self, replica_id: int) -> int | None:
        """Return the time of the last request in the fetch session of this replica.

        Returns None if the session belongs to another replica, or if all its requests name every
        partition.
        """
        ...


class Watchers:
    """A set of watchers. Each replica has one set for written data and another for visible data."""

    __slots__ = ("_all",)

    def __init__(self) -> None:
        self._all: dict[Watcher, None] = {}

    def __bool__(self) -> bool:
        return bool(self._all)

    def park(self, watcher: Watcher) -> None:
        self._all[watcher] = None

    def unpark(self, watcher: Watcher) -> None:
        self._all.pop(watcher, None)

    def requested_at_ms(self, replica_id: int) -> int | None:
        """Return the time of the last request in the replica's session that includes this
        partition, if there is such a session.
        """
        times = (watcher.requested_at_ms(replica_id) for watcher in self._all)
        return max((time for time in times if time is not None), default=None)

    def notify(self, more_bytes: int) -> None:
        """Notify the watchers that bytes can be read.

        With 0 bytes, no request is woken, but sessions check this partition again.
        """
        # Iterate over a copy, because a watcher may unpark itself when it is woken.
        for watcher in list(self._all):
            watcher.notify(more_bytes)

    def wake(self) -> None:
        """Wake the watchers because of a change that readers must learn about immediately."""
        for watcher in list(self._all):
            watcher.wake()


class LogDirs(Protocol):
    """Takes log directories offline (`DirectoryFailures`)."""

    def on_replica_error(self, replica: Replica, error: OSError) -> None: ...


class ReplicaHost(NamedTuple):
    """The parts of a broker that all its replicas share."""

    dirty: list[Replica]
    """The replicas that have staged data."""
    clock: Clock
    proposals: AlterPartitionQueue
    log_dirs: LogDirs
    traffic: Traffic


class Replica:
    """A partition that this broker hosts."""

    __slots__ = (
        "_dirty",
        "_followers",
        "_host",
        "_is_dirty",
        "_led_bytes",
        "_led_from",
        "_moved",
        "_next_ticket",
        "_notified_bytes",
        "_parked",
        "_proposal",
        "_stopped_by",
        "_sweep_at",
        "_synced",
        "_unseen_bytes",
        "_waiting",
        "adding",
        "flush",
        "log",
        "partition",
        "successor",
        "traffic",
    )

    def __init__(self, log: Log, partition: Partition, host: ReplicaHost) -> None:
        self.log = log
        self.partition = partition
        self._host = host
        self._dirty = host.dirty
        self.traffic = host.traffic.join(log.topic_partition.topic)
        """The metrics of the replica's topic. They are valid until `Replicas.remove` is called."""
        self._proposal: asyncio.Future[IsrAnswer] | None = None
        self._is_dirty = False
        self._waiting: list[tuple[int, int, bool, asyncio.Future[None]]] | None = None
        self._sweep_at = _FEW_WAITING  # above this size, abandoned requests are removed
        self._next_ticket = 0  # breaks ties between equal offsets in the heap, in order of arrival
        self._parked: Watchers | None = None
        self._followers: Watchers | None = None
        self._moved: asyncio.Event | None = None
        self._stopped_by: KafkaError | None = None
        self._led_bytes = 0  # appended as the leader but not yet in the topic's metrics
        self._led_from = _NOT_LED  # the offset at which the uncounted part begins
        self._unseen_bytes = 0  # appended but not yet below the high watermark
        self._notified_bytes = 0  # the part that followers have been notified of
        self.flush: asyncio.Task[None] | None = None
        """The flush in progress.

        It may take several syncs, because each sync covers the records that were appended during
        the previous one.
        """
        self._synced: asyncio.Future[None] | None = None
        self.successor: Log | None = None
        """The log in another directory that is going to replace this log.

        Records are not acknowledged until they are on disk in both logs.
        """
        self.adding: tuple[int, ...] = ()
        """On the leader, the brokers of the replicas that are still being added (KIP-455)."""

    @property
    def topic_partition(self) -> TopicPartition:
        return self.log.topic_partition

    @property
    def high_watermark(self) -> int:
        """Return the first offset that is not visible to consumers."""
        return self.partition.high_watermark

    @property
    def last_stable_offset(self) -> int:
        """Return the first offset that is not visible to `read_committed` consumers (CO-6)."""
        return self.log.last_stable_offset(self.partition.high_watermark)

    # --- append ----------------------------------------------------------------------------------

    def append(self, records: memoryview, wall_ms: int, is_unseen: bool = False) -> AppendResult:
        """Stage a batch that a producer sent to this broker as the leader.

        Raises the KafkaError to send to the client, OSError, or Doubt if `is_unseen` is set and the
        header may be wrong. After `written`, the batch counts and `records` are no longer needed.
        """
        self._will_write()
        result = self.log.append(records, self.partition.leader_epoch, wall_ms, is_unseen)
        # A duplicate batch gets the same response as the original batch. There is no new data for
        # readers (PR-6).
        if not result.is_duplicate:
            self._unseen_bytes += result.size_bytes
            self._led_bytes += result.size_bytes
        return result

    def append_own(self, records: memoryview, wall_ms: int) -> AppendResult:
        """Stage a batch from a coordinator on this broker, in the same way as `append`."""
        self._will_write()
        result = self.log.append_own(records, self.partition.leader_epoch, wall_ms)
        self._unseen_bytes += result.size_bytes
        self._led_bytes += result.size_bytes
        return result

    def append_control(self, records: memoryview, wall_ms: int) -> AppendResult:
        """Stage a transaction's marker, in the same way as `append`."""
        self._will_write()
        result = self.log.append_control(records, self.partition.leader_epoch, wall_ms)
        self._unseen_bytes += result.size_bytes
        self._led_bytes += result.size_bytes
        return result

    def _will_write(self) -> None:
        if not self._is_dirty:
            self._is_dirty = True
            self._dirty.append(self)

    def write_staged(self) -> None:
        """Write the data that has been staged. Raises OSError if the log has failed."""
        self._is_dirty = False
        self.log.write_staged()
        if self._followers:
            self._followers.notify(self._unseen_bytes - self._notified_bytes)
            self._notified_bytes = self._unseen_bytes

    def count_traffic(self) -> None:
        """Add the data that was appended as the leader since the last call to the topic's metrics.

        This is called when a metrics page is rendered and when leadership ends. Counting the
        records of every batch immediately would add one percent to the cost of a small request.
        """
        if self._led_from != _NOT_LED:
            end_offset = self.log.log_end_offset
            self.traffic.messages_in += end_offset - self._led_from
            self.traffic.bytes_in += self._led_bytes
            self._led_from, self._led_bytes = end_offset, 0

    def count_up_to(self, now_ms: int, end_offset: int) -> None:
        """Treat everything below `end_offset` as written and, if flushes are required,
        as flushed.
        """
        if self.successor is not None:
            # Acknowledged records must survive the switch to the other directory, so they must be
            # on disk in both logs.
            end_offset = min(end_offset, self.successor.recovery_point)
            if end_offset < self.partition.log_end_offset:
                return
        if self._followers:
            # Record which followers have caught up before the log grows. A follower that has caught
            # up now had also caught up at the last request of its session, even if that request did
            # not list this idle partition (RE-8).
            self.carry_out(self.partition.kept_up(self._followers.requested_at_ms, now_ms))
        effects = self.partition.on_appended(end_offset, now_ms)
        if effects:
            self.carry_out(effects)

    @property
    def waits_for_disk(self) -> bool:
        """Return whether appended data must be flushed before it is acknowledged."""
        return self.flush is not None or self.successor is not None

    async def wait_for_flush(self, offset: int) -> None:
        """If a flush has been requested, wait until everything below `offset` is on disk."""
        while self.waits_for_disk and offset > min(
            each.recovery_point for each in (self.log, self.successor) if each is not None
        ):
            # All waiting requests share one future, which is done after each sync. Requests for
            # later offsets then wait again.
            if self._synced is None:
                self._synced = asyncio.get_running_loop().create_future()
            await shielded(self._synced)

    def sync_ended(self) -> None:
        """Wake the requests that are waiting for a flush, so that they check again."""
        synced, self._synced = self._synced, None
        if synced is not None:
            synced.set_result(None)

    # --- read ------------------------------------------------------------------------------------

    def park(self, watcher: Watcher) -> None:
        """Return the watchers of visible data, which consumers join."""
        if self._parked is None:
            self._parked = Watchers()
        self._parked.park(watcher)

    def unpark(self, watcher: Watcher) -> None:
        if self._parked is not None:
            self._parked.unpark(watcher)

    @property
    def followers(self) -> Watchers:
        """Return the watchers of written data, whether or not it is visible.

        Followers wait among these.
        """
        if self._followers is None:
            self._followers = Watchers()
        return self._followers

    # --- as leader -------------------------------------------------------------------------------

    def on_fetch(self, fetch: FollowerFetch, now_ms: int) -> None:
        """Record a follower's fetch, which acknowledges everything below its fetch offset (RE-5).

        Raises NotLeaderOrFollower, FencedLeaderEpoch or UnknownLeaderEpoch.
        """
        self.carry_out(self.partition.on_fetch(fetch, now_ms))
        if self._moved is not None:
            # DeleteRecords waits until each follower's log starts at the requested offset (ST-10).
            self._moved.set()

    def carry_out(self, effects: Sequence[Effect]) -> None:
        """Apply the decisions that the machine has made."""
        for effect in effects:
            if effect.__class__ is Advance:
                self._high_watermark_rose()
            elif not isinstance(effect, Advance):
                self._propose(effect.proposal)

    def _propose(self, proposal: IsrProposal) -> None:
        """Submit an ISR to the controller, whose response arrives in a later turn of the loop."""
        answer = self._proposal = self._host.proposals.submit(self.partition, proposal)
        answer.add_done_callback(partial(self._on_isr_answer, proposal))

    def _on_isr_answer(self, proposal: IsrProposal, future: asyncio.Future[IsrAnswer]) -> None:
        partition, counts = self.partition, self._host.proposals
        # A new leader makes its own proposals.
        if future.cancelled() or not partition.is_leader:
            return
        answer = future.result()
        before, was_changing = set(partition.isr), partition.is_changing_isr
        now_ms = self._host.clock.monotonic_ms()
        self.carry_out(partition.on_isr_answer(proposal, answer, now_ms))
        if answer.error_code:
            counts.failed_updates.increment(was_changing)
        else:
            counts.isr_shrinks.increment(not before.issubset(partition.isr))
            counts.isr_expands.increment(not before.issuperset(partition.isr))
        self.isr_changed()

    def wait_for(self, offset: int, *, is_strict: bool = False) -> asyncio.Future[None]:
        """Return a future that is done when the high watermark has reached `offset`.

        The future fails if leadership is lost. If `is_strict`, it also fails with
        NotEnoughReplicasAfterAppend when the ISR falls below the minimum.
        """
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        # This broker may have lost the leadership since the append.
        if self._stopped_by is not None:
            future.set_exception(self._stopped_by)
            return future
        if offset <= self.partition.high_watermark:  # it may have risen since the caller checked
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
        """Remove requests that were abandoned.

        Nothing else removes them while the high watermark does not move.
        """
        self._waiting = [each for each in self._waiting or () if not each[3].done()]
        heapq.heapify(self._waiting)
        self._sweep_at = max(_FEW_WAITING, 2 * len(self._waiting))

    async def low_watermark_moves(self, timeout_s: float) -> None:
        """Wait until a follower has fetched, leadership is lost, or the timeout has passed."""
        if self._moved is None or self._moved.is_set():
            self._moved = asyncio.Event()
        try:
            async with asyncio.timeout(timeout_s):
                await self._moved.wait()
        except TimeoutError:
            return

    def log_start_moved(self) -> None:
        """Notify readers and followers that retention or DeleteRecords has moved the log start."""
        self.partition.on_log_start_moved(self.log.log_start_offset)
        self.wake_watchers()

    def fail(self, error: OSError) -> None:
        """Take this replica and its failed log directory offline."""
        self._host.log_dirs.on_replica_error(self, error)

    # --- as follower -----------------------------------------------------------------------------

    def on_copied(self, size_bytes: int, before: int, effects: Sequence[Effect]) -> None:
        """Process records that were copied from the leader.

        `size_bytes` bytes were written at offset `before`, which was the log end. `effects` are the
        effects of the leader's high watermark.
        """
        self._unseen_bytes += size_bytes
        self.traffic.replication_bytes_in += size_bytes
        if effects:
            self.carry_out(effects)
            if before <= self.partition.high_watermark < self.log.log_end_offset:
                self._unseen_bytes = size_bytes  # earlier records have become visible

    # --- roles -----------------------------------------------------------------------------------

    def leads(self) -> None:
        """Become the leader of the partition in a new leader epoch."""
        self._stopped_by = None
        self._unseen_bytes = self._notified_bytes = 0
        self.count_traffic()
        self._led_from = self.log.log_end_offset
        self.partition.on_log_start_moved(self.log.log_start_offset)
        self.wake_watchers()

    def isr_changed(self) -> None:
        """If the ISR has become too small, fail the requests with acks=all.

        The sessions of followers check this partition again with their next request, because a
        follower that was out of sync may rejoin.
        """
        if self._followers is not None:
            self._followers.notify(0)
        if not self._waiting:
            return
        try:
            self.partition.check_written_to_all()
        except NotEnoughReplicasAfterAppend as error:
            self._fail_strict(error)

    def _fail_strict(self, error: NotEnoughReplicasAfterAppend) -> None:
        assert self._waiting is not None
        strict = [future for _, _, is_strict, future in self._waiting if is_strict]
        self._waiting = [each for each in self._waiting if not each[2]]
        heapq.heapify(self._waiting)
        for future in strict:
            if not future.done():
                future.set_exception(error)

    def on_stopped(self, reason: KafkaError | None = None) -> None:
        """Fail all waiting requests because this broker no longer leads or hosts the partition, or
        because its log is offline.
        """
        error = self._stopped_by = reason or NotLeaderOrFollower(
            f"{self.topic_partition} is no longer led by this broker"
        )
        self._unseen_bytes = self._notified_bytes = 0
        self.count_traffic()
        self._led_from = _NOT_LED
        if self._proposal is not None:
            self._proposal.cancel()
        waiting, self._waiting = self._waiting, None
        for *_, future in waiting or ():
            if not future.done():
                future.set_exception(error)
        if self._moved is not None:
            self._moved.set()
        self.wake_watchers()

    def wake_watchers(self) -> None:
        """Wake all readers because of a change that they must learn about immediately, such as a
        change of leadership or a deletion.
        """
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
        visible_bytes = self._unseen_bytes or 1  # appended before the metric existed
        if high_watermark >= self.log.log_end_offset:
            self._unseen_bytes = self._notified_bytes = 0
        if self._parked is not None:
            self._parked.notify(visible_bytes)
        # Sessions check this partition again although there is no new data, because the high
        # watermark has risen. No session is woken (RE-7, KAFKA-9952).
        if self._followers is not None:
            self._followers.notify(0)


class ReplicaClasses(NamedTuple):
    """The classes that are used for hosted partitions. The simulator replaces some of them."""

    partition: Callable[..., Partition] = Partition
    replica: Callable[[Log, Partition, ReplicaHost], Replica] = Replica


OWN_CLASSES = ReplicaClasses()
"""The classes that a broker uses."""
