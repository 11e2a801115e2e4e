"""Fetches data of the assigned partitions, slightly ahead of what the user reads (CO-1).

At most one request per broker is in flight. It asks for each of the broker's partitions that has
too little data buffered, so the next chunk is fetched while the user processes the current one.
Fetch sessions are not used (session id 0, epoch -1), so every request lists all of its partitions.

If `client.rack` is set, a leader may direct the consumer to a follower (KIP-392). The follower is
used until it fails, for `metadata.max.age.ms` at most; then the leader is asked again. After a
failure, requests omit the rack for a while, because otherwise the leader might choose the same
unreachable follower.

`queued.max.messages.kbytes` limits the amount of data that has been fetched but not polled. Each
request first reserves memory for the largest possible response. If there is not enough memory,
nothing is fetched ahead. If the user is waiting, a fetch is sent in any case. To make room, data
that is buffered for paused partitions may be dropped and fetched again later.

No fetch is sent to a leader until it has validated all doubtful positions.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from barnabas.client.channel import BrokerAddress
from barnabas.client.cluster import Cluster
from barnabas.client.config import ConsumerConfig
from barnabas.client.consumer.assignment import AssignedPartition, Assignment
from barnabas.client.consumer.chunk_queue import ChunkQueue
from barnabas.client.consumer.fetched import AbortedTransaction, Chunk
from barnabas.client.consumer.truncation import Truncation
from barnabas.client.errors import AUTHENTICATION_ERRORS, NoOffsetForPartition, broker_error
from barnabas.client.offsets import READ_COMMITTED, READ_UNCOMMITTED
from barnabas.client.retry_log import MOMENT_MS, RetryLog
from barnabas.errors import (
    BarnabasError,
    CorruptMessage,
    FencedLeaderEpoch,
    LeaderNotAvailable,
    MessageTooLarge,
    OffsetOutOfRange,
    error_for_code,
)
from barnabas.protocol.api import FETCH
from barnabas.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from barnabas.types import TopicPartition

_log = logging.getLogger(__name__)

_LAST_WITH_NAMES = 12  # later versions of Fetch identify topics by id (KIP-516)
_LEADERS_ONLY_MS = 30_000
_MOST_BUFFERED = 2  # chunks per partition: the one in use and the next one

Requested = list[tuple[AssignedPartition, int, int]]  # (state, its generation, fetch offset)


class _Preferred(NamedTuple):
    """A follower to read from, and the time at which to go back to the leader."""

    broker_id: int
    until_ms: int


class Fetcher:
    """Sends a consumer's fetch requests, and queues the chunks until a poll takes them."""

    def __init__(self, cluster: Cluster, config: ConsumerConfig, assignment: Assignment) -> None:
        self._cluster = cluster
        self._config = config
        self._assignment = assignment
        self._clock = cluster.seams.clock
        self._truncation = Truncation(cluster, config)
        self._unserved = RetryLog(MOMENT_MS)
        self._isolation_level = (
            READ_COMMITTED if config.isolation_level == "read_committed" else READ_UNCOMMITTED
        )
        self._fetches: dict[int, asyncio.Task[None]] = {}  # by broker id
        self._preferred: dict[TopicPartition, _Preferred] = {}  # partitions to read from a follower
        self._leaders_only_until_ms = 0
        self._followed = 0  # the metadata generation of the leaders in use
        self._leaderless: list[AssignedPartition] = []  # paused until new metadata
        self._reserved_bytes = 0  # memory reserved for responses to fetches in flight
        self.chunks = ChunkQueue()
        cluster.metadata.add_listener(self._resume_leaderless)
        self.on_new_topic: Callable[[TopicPartition], None] = lambda name: None
        self._arrived = asyncio.Event()
        cluster.tasks.add_failure_listener(lambda error: self._arrived.set())

    async def close(self) -> None:
        tasks = list(self._fetches.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def follow_leaders(self) -> None:
        """Apply leader changes. Buffered records of a position that is now doubtful are dropped."""
        view = self._cluster.metadata.view
        if view.generation != self._followed:
            self._followed = view.generation
            for state in self._assignment:
                self._follow(state)

    def send_fetches(self, *, ahead: bool = False) -> None:
        """Send a fetch to each broker that has none in flight and has partitions that need data.

        With `ahead`, only records that are known to exist are fetched. A broker holds a request for
        records that do not exist yet, which would delay the partitions that the user reads next.
        """
        room = self._room()
        if room <= 0 and ahead:
            return
        # A poll is waiting for records, so drop buffered records of paused partitions to make room.
        if room <= 0 < self.chunks.size_bytes:
            self.chunks.drop_paused()
            room = self._room()
        metadata = self._cluster.metadata
        now_ms = self._clock.monotonic_ms()
        by_node: dict[BrokerAddress, list[AssignedPartition]] = {}
        for state in self._assignment:
            if not state.wants(now_ms, _MOST_BUFFERED) or (ahead and not state.lags()):
                continue
            source = self._source(state, now_ms)
            if source is None:
                # Track the topics again, because idle or deleted ones may have been forgotten.
                metadata.track([state.topic_partition.topic])
                metadata.request_refresh()
                self._pause(state)
                self._leaderless.append(state)
                self._warn(state, now_ms)
                continue
            self._unserved.over(state.topic_partition)
            # Send one fetch per broker at a time, because a second one would wait behind the first,
            # which the broker may hold.
            if source.node_id not in self._fetches:
                by_node.setdefault(source, []).append(state)
        for node, states in by_node.items():
            doubtful = [state for state in states if state.is_doubtful]
            if doubtful:
                # Validate first, because the broker may hold a fetch, which would delay the
                # validation (KIP-320).
                work = self._work(node, doubtful, self._truncation.settle)
            else:
                # A larger batch is returned alone (KIP-74).
                each = self._config.max_partition_fetch_bytes
                most = max(room // len(by_node), each)
                most = min(most, self._config.fetch_max_bytes, len(states) * each)
                self._reserved_bytes += most
                work = self._work(node, states, partial(self._fetch, most), most)
            self._fetches[node.node_id] = self._cluster.tasks.start(f"a fetch from {node}", work)

    def _room(self) -> int:
        limit_bytes = self._config.queued_max_messages_kbytes * 1024
        return limit_bytes - self.chunks.size_bytes - self._reserved_bytes

    async def wait(self, until_ms: int) -> bool:
        """Wait for a chunk, an error, or the end of a backoff. Returns False if the time is up."""
        now_ms = self._clock.monotonic_ms()
        wake_ms = until_ms
        for state in self._assignment:
            if now_ms < state.not_before_ms < wake_ms and not state.fetching:
                wake_ms = state.not_before_ms
        # Do not clear the event before waiting, because the wait must end immediately if something
        # has arrived since the last check.
        try:
            async with asyncio.timeout(max(wake_ms - now_ms, 0) / 1000):
                await self._arrived.wait()
        except TimeoutError:
            return self._clock.monotonic_ms() < until_ms
        self._arrived.clear()
        return True

    def wake(self) -> None:
        """Stop waiting, because a position lookup has succeeded or failed."""
        self._arrived.set()

    def raise_error(self) -> None:
        """Raise the pending error of a partition. Each error is raised only once."""
        for state in self._assignment:
            if state.error is not None:
                error, state.error = state.error, None
                raise error

    # ---- the source of a partition ----

    def _source(self, state: AssignedPartition, now_ms: int) -> BrokerAddress | None:
        """Return the leader or the follower chosen by it, or None if the leader is unknown."""
        view = self._cluster.metadata.view
        topic_partition = state.topic_partition
        self._follow(state)
        preferred = self._preferred.get(topic_partition)
        if state.is_doubtful:
            # Only a leader can validate a position.
            self._preferred.pop(topic_partition, None)
            if state.leader_epoch < state.epoch:
                return None  # older than the position, so it cannot validate it
        elif preferred is not None:
            node = view.nodes.get(preferred.broker_id)
            if node is not None and now_ms < preferred.until_ms:
                return node
            del self._preferred[topic_partition]
        return view.leader(topic_partition)

    def _warn(self, state: AssignedPartition, now_ms: int) -> None:
        """Log why this partition cannot be fetched, and what the user can do about it."""
        is_ahead = state.is_doubtful and state.leader_epoch < state.epoch
        kind = FencedLeaderEpoch if is_ahead else LeaderNotAvailable
        if not self._unserved.is_news(state.topic_partition, kind, now_ms):
            return
        if is_ahead:
            _log.warning(
                "%s is led in epoch %d, but offset %d was read in epoch %d: waiting for a leader "
                "that knows the later epoch. If the topic was deleted and created again, no leader "
                "will know it: seek, or reset the group's offset",
                *(state.topic_partition, state.leader_epoch, state.position, state.epoch),
            )
        else:
            _log.warning("%s has no leader, retrying", state.topic_partition)

    def _follow(self, state: AssignedPartition) -> None:
        view = self._cluster.metadata.view
        topic = view.topics.get(state.topic_partition.topic)
        if topic is None:
            return
        if not state.follow(topic.topic_id, view.leader_epoch(state.topic_partition)):
            self._start_in_new_topic(state)

    def _start_in_new_topic(self, state: AssignedPartition) -> None:
        """Start from the beginning, because the topic was deleted and recreated (CO-5).

        No record of the new topic has been read yet. The log of the new topic may already be longer
        than the old position; continuing at that position would skip the beginning.
        """
        self.on_new_topic(state.topic_partition)
        reset = self._config.auto_offset_reset
        if reset == "none":
            offset = state.position
            state.seek_by(reset)
            state.error = NoOffsetForPartition(
                f"the topic of {state.topic_partition} was deleted and created again, so offset "
                f"{offset} means nothing in it, and auto.offset.reset is none: seek to an offset"
            )
            return
        _log.warning(
            "the topic of %s was deleted and created again; resetting offset %d to the %s offset",
            state.topic_partition,
            state.position,
            reset,
        )
        state.seek_by(reset)

    def _prefer(self, state: AssignedPartition, broker_id: int) -> None:
        """Read from the follower that the leader has chosen (KIP-392)."""
        now_ms = self._clock.monotonic_ms()
        if now_ms < self._leaders_only_until_ms:
            return  # a follower has failed since the request
        if broker_id not in self._cluster.metadata.view.nodes:
            self._cluster.metadata.request_refresh()
            self._pause(state)  # another request would get the same response
            return
        until_ms = now_ms + self._cluster.config.metadata_max_age_ms
        self._preferred[state.topic_partition] = _Preferred(broker_id, until_ms)

    # ---- one request ----

    async def _work(
        self,
        node: BrokerAddress,
        states: list[AssignedPartition],
        ask: Callable[[BrokerAddress, list[AssignedPartition]], Awaitable[None]],
        reserved_bytes: int = 0,
    ) -> None:
        """Send a request that concerns these partitions, and handle any failure."""
        for state in states:
            state.fetching = True
        try:
            await ask(node, states)
        except AUTHENTICATION_ERRORS as error:
            # The next poll raises this permanent error; any other error is retried.
            for state in states:
                state.error = error
        except BarnabasError as error:
            _log.info("%s", error)
            self._cluster.metadata.request_refresh()
            if any(state.topic_partition in self._preferred for state in states):
                # Omit the rack for a while, because otherwise the leader would choose the same
                # follower again.
                self._preferred.clear()
                lasts_ms = min(_LEADERS_ONLY_MS, self._cluster.config.metadata_max_age_ms)
                self._leaders_only_until_ms = self._clock.monotonic_ms() + lasts_ms
            for state in states:
                self._pause(state)
        finally:
            self._reserved_bytes -= reserved_bytes
            for state in states:
                state.fetching = False
            del self._fetches[node.node_id]
            self._arrived.set()

    async def _fetch(
        self, most_bytes: int, node: BrokerAddress, states: Sequence[AssignedPartition]
    ) -> None:
        requested: Requested = [(state, state.generation, state.fetch_offset) for state in states]
        # With topic ids, a broker rejects positions in a topic that was deleted and recreated.
        at_most = None if all(state.topic_id for state in states) else _LAST_WITH_NAMES
        names = {state.topic_id: state.topic_partition.topic for state in states}
        response = await self._cluster.call(
            node, FETCH, self._request(requested, most_bytes), FetchResponse, at_most
        )
        if response.error_code:
            raise broker_error(response.error_code, f"fetching from {node}")
        self._accept(requested, response, names)

    def _request(self, requested: Requested, most_bytes: int) -> FetchRequest:
        config = self._config
        is_for_leaders = self._clock.monotonic_ms() < self._leaders_only_until_ms
        topics: dict[tuple[str, bytes], list[FetchPartition]] = {}
        for state, _, offset in requested:
            topic, partition = state.topic_partition
            wanted = FetchPartition(
                partition=partition,
                current_leader_epoch=state.leader_epoch,
                fetch_offset=offset,
                partition_max_bytes=config.max_partition_fetch_bytes,
            )
            topics.setdefault((topic, state.topic_id), []).append(wanted)
        return FetchRequest(
            replica_id=-1,
            max_wait_ms=config.fetch_max_wait_ms,
            min_bytes=config.fetch_min_bytes,
            max_bytes=most_bytes,
            isolation_level=self._isolation_level,
            topics=[
                FetchTopic(topic=topic, topic_id=topic_id or bytes(16), partitions=wanted)
                for (topic, topic_id), wanted in topics.items()
            ],
            # Without a rack, the leader returns the records itself (KIP-392).
            rack_id="" if is_for_leaders else config.client_rack,
        )

    def _accept(
        self, requested: Requested, response: FetchResponse, names: Mapping[bytes, str]
    ) -> None:
        by_partition = {each[0].topic_partition: each for each in requested}
        for topic in response.responses:
            name = topic.topic or names.get(bytes(topic.topic_id), "")
            for data in topic.partitions:
                key = TopicPartition(name, data.partition_index)
                if key not in by_partition:
                    continue
                state, generation, offset = by_partition[key]
                # The records are outdated, because the user has called seek or a rebalance has
                # happened.
                if not state.is_current(generation):
                    continue
                if data.error_code:
                    self._on_error(state, offset, data.error_code)
                elif data.preferred_read_replica >= 0:
                    self._prefer(state, data.preferred_read_replica)
                else:
                    self._arrive(state, offset, data)

    def _arrive(self, state: AssignedPartition, offset: int, data: PartitionData) -> None:
        state.high_watermark = data.high_watermark
        state.last_stable_offset = data.last_stable_offset
        state.log_start_offset = data.log_start_offset
        state.not_before_ms = 0
        if not data.records:
            return
        aborted = [
            AbortedTransaction(each.producer_id, each.first_offset)
            for each in data.aborted_transactions or ()
        ]
        try:
            assert isinstance(data.records, memoryview), "decoded records are a view"
            chunk = Chunk(state.topic_partition, offset, data.records, aborted, data.high_watermark)
        except BarnabasError as error:
            state.error = error
            return
        if not chunk.records:
            # The response ends inside its first batch. Since KIP-74, brokers send the first batch
            # whole regardless of limits; for an older broker, the user has to raise the limit.
            state.error = MessageTooLarge(
                f"the batch at offset {offset} of {state.topic_partition} is larger than "
                f"{self._config.max_partition_fetch_bytes} bytes: raise max.partition.fetch.bytes"
            )
            return
        state.fetch_offset = chunk.next_offset
        self.chunks.put(state, chunk)

    def _on_error(self, state: AssignedPartition, offset: int, code: int) -> None:
        kind = error_for_code(code)
        # After any error from a follower, return to the leader, which may choose another.
        was_preferred = self._preferred.pop(state.topic_partition, None) is not None
        if kind is OffsetOutOfRange and was_preferred:
            self._pause(state)  # a follower may lag, so only the leader's response counts
        elif kind is OffsetOutOfRange:
            self._out_of_range(state, offset)
        elif kind is CorruptMessage:
            # This is permanent, as in Java, because another fetch would return the same batch and
            # only the user may skip records.
            subject = f"fetching from offset {offset} of {state.topic_partition}"
            state.error = broker_error(code, subject, "the stored batch is damaged; seek past it")
        elif kind.retriable:
            self._cluster.metadata.request_refresh()
            self._pause(state)
        else:
            state.error = broker_error(code, f"fetching from {state.topic_partition}")

    def _out_of_range(self, state: AssignedPartition, offset: int) -> None:
        """Handle an out-of-range position, once new metadata has confirmed the leader (CO-5).

        A deposed leader that does not know its successor rejects offsets that the successor has
        written.
        """
        reset = self._config.auto_offset_reset
        metadata = self._cluster.metadata
        if state.position < state.fetch_offset:
            self._pause(state)  # return the buffered records first, then refetch
        elif state.refused_in in (-1, metadata.view.generation):
            # Wait until new metadata confirms that this broker still leads the partition.
            state.refused_in = metadata.view.generation
            metadata.track([state.topic_partition.topic])
            metadata.request_refresh()
            self._pause(state)
            self._leaderless.append(state)
        elif reset == "none":
            state.error = NoOffsetForPartition(
                f"offset {offset} of {state.topic_partition} is out of range, and "
                "auto.offset.reset is none: seek to a valid offset"
            )
        else:
            _log.warning(
                "offset %d of %s is out of range; resetting to the %s offset",
                offset,
                state.topic_partition,
                reset,
            )
            state.seek_by(reset)

    def _resume_leaderless(self) -> None:
        """End the backoff of partitions that have no leader, because new metadata has arrived."""
        for state in self._leaderless:
            state.not_before_ms = 0
        if self._leaderless:
            self._leaderless.clear()
            self._arrived.set()

    def _pause(self, state: AssignedPartition) -> None:
        state.not_before_ms = self._clock.monotonic_ms() + self._cluster.config.retry_backoff_ms
