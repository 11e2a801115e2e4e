"""Replicates partitions from one leader over a single connection.

    ask -> append, write, partition by partition -> (flush, where required) -> ask

Only one request is in flight at a time. It acknowledges all records below its fetch offsets,
because this broker has written them. If a partition fails, it is skipped for
`replica.fetch.backoff.ms` and does not delay the other partitions. If the leader cannot be reached,
the fetcher keeps trying until the controller appoints another leader.
"""

from __future__ import annotations

import asyncio
import heapq
import logging
from typing import TYPE_CHECKING

from barnabas.broker.replication.followed import Followed, settling
from barnabas.broker.replication.leader_connection import LeaderConnection
from barnabas.broker.runtime.steps import in_turns
from barnabas.counted import counted
from barnabas.errors import (
    BarnabasError,
    CorruptData,
    FetchSessionIdNotFound,
    FetchSessionTopicIdError,
    InvalidFetchSessionEpoch,
    KafkaError,
    is_out_of_descriptors,
)
from barnabas.replication.fetch_requests import FetchRequests, Limits, Requester
from barnabas.replication.follower import FetchBounds, Wait

if TYPE_CHECKING:
    from collections.abc import Sequence

    from barnabas.broker.configs.current_config import CurrentConfig
    from barnabas.broker.partitions.replica import Replica
    from barnabas.broker.replication.fetcher_parts import FetcherParts
    from barnabas.config import BrokerConfig
    from barnabas.protocol.messages.fetch import FetchResponse
    from barnabas.replication.fetch_requests import Answered
    from barnabas.replication.follower import Step
    from barnabas.types import TopicPartition

_log = logging.getLogger(__name__)

_BYTES_PER_TURN = 1 << 20  # bytes appended before other tasks get a turn
_CUTS_PER_TURN = 4
_FIRST_RECONNECT_MS = 50
_LONGEST_THROTTLE_MS = 1_000  # wait before reading the rate again, because it may have been raised

# The leader has dropped the fetch session, and the next request starts a new session immediately.
_SESSION_LOST = (FetchSessionIdNotFound, InvalidFetchSessionEpoch, FetchSessionTopicIdError)


class Fetcher:
    """Fetches partitions from one leader until `close` is called."""

    __slots__ = (
        "_backoff_ms",
        "_connection",
        "_ended",
        "_followed",
        "_is_lost",
        "_parts",
        "_requests",
        "_resting",
        "_task",
        "_tickets",
        "_work",
    )

    def __init__(self, parts: FetcherParts, leader_id: int, number: int) -> None:
        self._parts = parts
        self._connection = LeaderConnection(
            parts.view, parts.config, parts.peers, leader_id, number
        )
        self._requests = FetchRequests(_limits(parts.config))
        self._followed: dict[TopicPartition, Followed] = {}
        self._resting: list[tuple[int, int, Followed]] = []  # a heap ordered by due time
        self._tickets = 0  # breaks ties in the heap
        self._backoff_ms = _FIRST_RECONNECT_MS
        self._is_lost = False  # True once the lost connection has been logged
        self._work = asyncio.Event()  # set when there may be something to fetch
        self._task = asyncio.get_running_loop().create_task(self._run())
        self._ended = asyncio.Event()
        self._task.add_done_callback(lambda _: self._ended.set())

    @property
    def leader_id(self) -> int:
        return self._connection.leader_id

    @property
    def partitions(self) -> dict[TopicPartition, Followed]:
        """The partitions that are replicated by this fetcher."""
        return self._followed

    def configure(self, config: BrokerConfig) -> None:
        """Apply broker settings that have changed."""
        self._requests.limit(_limits(config))

    def follow(self, replica: Replica) -> None:
        """Start replicating the partition. Must be called again in each new leader epoch."""
        name = replica.topic_partition
        before = self._followed.get(name)
        # A new replica object has its own log, which may end at a different offset.
        if before is not None and before.replica is not replica:
            self._requests.forget(name)
        followed = Followed(replica, self._parts)
        self._followed[name] = followed
        self._ask_for(followed)
        self._work.set()

    def unfollow(self, name: TopicPartition) -> None:
        """Stop replicating the partition. If any data for it still arrives, the data is dropped."""
        if self._followed.pop(name, None) is not None:
            self._requests.forget(name)

    def close(self) -> None:
        """Stop appending. The connection is closed in the next turn of the event loop."""
        self._task.cancel()

    async def wait_closed(self) -> None:
        """Wait until the connection has been closed. Must be called after `close`."""
        await self._ended.wait()

    # --- the loop --------------------------------------------------------------------------------

    async def _run(self) -> None:
        try:
            while True:
                await self._replicate()
                self._requests.reset_session()
                await asyncio.sleep(self._backoff_ms / 1000)
                longest_ms = self._parts.config.int("replica.fetch.backoff.ms")
                self._backoff_ms = min(2 * self._backoff_ms, max(longest_ms, _FIRST_RECONNECT_MS))
        finally:
            self._connection.close()

    async def _replicate(self) -> None:
        """Connect, and fetch until the connection or the leader has failed."""
        try:
            await self._connection.open()
            while True:
                await self._round()
                self._found()
        except BarnabasError as error:
            self._lost(error)
        except Exception:
            # This is a bug in Barnabas. Keep fetching anyway, because this broker would otherwise
            # drop out of all ISRs.
            _log.exception("fetching from broker %d failed; restarting the fetcher", self.leader_id)
        finally:
            self._connection.close()

    def _found(self) -> None:
        self._backoff_ms = _FIRST_RECONNECT_MS
        if self._is_lost:
            self._is_lost = False
            _log.info("fetching from broker %d again", self.leader_id)

    def _lost(self, error: BarnabasError) -> None:
        """Log the loss of the connection only once, and not for every attempt to connect."""
        is_news = not (self._is_lost or self._parts.view.is_cluster_stopping)
        level = logging.WARNING if is_news else logging.DEBUG
        self._is_lost = True
        _log.log(
            level,
            "cannot fetch %s from broker %d: %s; retrying until it succeeds or another broker "
            "leads",
            counted(len(self._followed), "partition"),
            self.leader_id,
            error,
        )

    async def _round(self) -> None:
        """Send one request and process the response."""
        self._end_rests()
        # Either all partitions are backing off, or there are none left.
        if not len(self._requests):
            await self._wait_for_work()
            return
        view = self._parts.view
        request, version = self._requests.next(
            Requester(view.broker_id, view.broker_epoch, self._connection.fetch_version)
        )
        try:
            await self._carry_out(await self._connection.fetch(request, version))
        except _SESSION_LOST as error:
            _log.debug("broker %d: %s", self.leader_id, error)

    def _ask_for(self, followed: Followed) -> None:
        throttled_ms = followed.throttled_ms(self._parts.replicas.clock.monotonic_ms())
        # RE-13: skip a replica that lags and is throttled, so that it does not delay other
        # replicas.
        if throttled_ms:
            self._rest(followed, min(throttled_ms, _LONGEST_THROTTLE_MS))
            return
        self._requests.want(
            followed.replica.topic_partition, followed.topic_id, followed.fetch_from()
        )

    # --- a response -------------------------------------------------------------------------------

    async def _carry_out(self, response: FetchResponse) -> None:
        """Append the fetched records and advance the fetch offsets."""
        now_ms = self._parts.replicas.clock.monotonic_ms()
        taken_bytes = 0
        cut: list[TopicPartition] = []
        flushing: list[Replica] = []
        lost: dict[TopicPartition, Followed] = {}
        for answered in self._requests.on_answer(response):
            followed = self._followed.get(answered.topic_partition)
            # The leader was changed while the request was in flight.
            if followed is None:
                continue
            if followed.is_cut:  # there was no file descriptor for syncing an earlier truncation
                cut.append(answered.topic_partition)
                self._ask_for(followed)
                continue
            self._take(followed, answered, now_ms, lost)
            if followed.is_cut:
                cut.append(answered.topic_partition)
                # Truncation reads and removes files on the event loop, so let other tasks run
                # between the truncations.
                if len(cut) % _CUTS_PER_TURN == 0:
                    await asyncio.sleep(0)
            records = answered.data.records
            if records:
                taken_bytes += len(records)
                if followed.replica.waits_for_disk:
                    flushing.append(followed.replica)
                if taken_bytes >= _BYTES_PER_TURN:
                    taken_bytes = 0
                    await asyncio.sleep(0)
        if cut:
            await self._settle(cut)
        for replica in flushing:
            # If records must be flushed, they have to be flushed before they are acknowledged.
            await replica.wait_for_flush(replica.log.log_end_offset)
        if lost:
            await self._find_bounds(lost)

    def _take(
        self,
        followed: Followed,
        answered: Answered,
        now_ms: int,
        lost: dict[TopicPartition, Followed],
    ) -> None:
        """Apply the part of a response that concerns one partition.

        If its offset is out of range, add the partition to `lost`.
        """
        try:
            step = followed.take(answered.sent, answered.data, now_ms)
        except OSError as error:
            self._disk_failed(followed, error)
        except (CorruptData, KafkaError) as error:
            _log.error(
                "cannot append records that broker %d sent for %s from offset %d: %s",
                self.leader_id,
                answered.topic_partition,
                answered.sent.offset,
                error,
            )
            self._rest(followed, self._parts.config.int("replica.fetch.backoff.ms"))
        except Exception:
            # This is a bug in Barnabas. As in Kafka, only this partition is stopped.
            _log.exception(
                "%s is no longer fetched until the controller names its leader again",
                answered.topic_partition,
            )
            self.unfollow(answered.topic_partition)
        else:
            if type(step) is FetchBounds:
                self._requests.forget(answered.topic_partition)
                lost[answered.topic_partition] = followed
            else:
                self._go_on(followed, step)

    def _go_on(self, followed: Followed, step: Step) -> None:
        if type(step) is Wait:
            self._rest(followed, step.ms)
        else:
            self._ask_for(followed)

    async def _find_bounds(self, lost: dict[TopicPartition, Followed]) -> None:
        """Fetch the start and end offsets of the leader's logs for partitions whose offset is out
        of range.
        """
        backoff_ms = self._parts.config.int("replica.fetch.backoff.ms")
        try:
            found = await self._connection.bounds(
                {name: followed.fetch_from().leader_epoch for name, followed in lost.items()}
            )
        except BarnabasError:
            for followed in lost.values():
                self._rest(followed, backoff_ms)
            raise
        for name, followed in lost.items():
            bounds = found.get(name)
            if self._followed.get(name) is not followed:
                continue
            if bounds is None or bounds.error_code:
                self._rest(followed, backoff_ms)
                continue
            try:
                step = followed.bounds(bounds.earliest, bounds.latest)
            except OSError as error:
                self._disk_failed(followed, error)
                continue
            self._go_on(followed, step)
            if followed.is_cut:
                await self._settle([name])

    async def _settle(self, cut: Sequence[TopicPartition]) -> None:
        """Wait until these truncations have reached the disk. Until then, nothing beyond them is
        fetched.
        """
        replicas = self._parts.replicas
        followed_now = [self._followed[name] for name in cut if name in self._followed]
        await in_turns(settling(replicas.store, followed_now), replicas.threads.background)
        for name in cut:
            followed = self._followed.get(name)
            if followed is not None and followed.is_cut:
                self._rest(followed, self._parts.config.int("replica.fetch.backoff.ms"))

    def _disk_failed(self, followed: Followed, error: OSError) -> None:
        if is_out_of_descriptors(error):  # this is not a disk failure, so retry
            self._rest(followed, self._parts.config.int("replica.fetch.backoff.ms"))
        else:
            self.unfollow(followed.replica.topic_partition)
        followed.replica.fail(error)

    # --- failing partitions ----------------------------------------------------------------------

    def _rest(self, followed: Followed, wait_ms: int) -> None:
        """Skip the partition for a while, because its next fetch would fail in the same way."""
        name = followed.replica.topic_partition
        if self._followed.get(name) is not followed:
            return
        self._requests.forget(name)
        due_ms = self._parts.replicas.clock.monotonic_ms() + wait_ms
        heapq.heappush(self._resting, (due_ms, self._tickets, followed))
        self._tickets += 1

    def _end_rests(self) -> None:
        now_ms = self._parts.replicas.clock.monotonic_ms()
        while self._resting and self._resting[0][0] <= now_ms:
            followed = heapq.heappop(self._resting)[2]
            if self._followed.get(followed.replica.topic_partition) is followed:
                self._ask_for(followed)

    async def _wait_for_work(self) -> None:
        self._work.clear()
        due_s = None
        if self._resting:
            due_s = max(self._resting[0][0] - self._parts.replicas.clock.monotonic_ms(), 1) / 1000
        try:
            async with asyncio.timeout(due_s):
                await self._work.wait()
        except TimeoutError:
            return  # the time at which a backoff ends


def _limits(config: BrokerConfig | CurrentConfig) -> Limits:
    return Limits(
        max_wait_ms=config.int("replica.fetch.wait.max.ms"),
        min_bytes=config.int("replica.fetch.min.bytes"),
        max_bytes=config.int("replica.fetch.response.max.bytes"),
        partition_max_bytes=config.int("replica.fetch.max.bytes"),
    )
