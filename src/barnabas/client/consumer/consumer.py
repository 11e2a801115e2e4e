"""The consumer: reads partitions that it names (`assign`) or that its group assigns (`subscribe`).

    async with Consumer("localhost:9092", group_id="readers") as consumer:
        consumer.subscribe(["test"])
        records = await consumer.poll(1_000)

Records of a partition come in order, each once, from its position on: the group's committed offset,
if there is one, else that of `auto.offset.reset`. Used by one task at a time.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, TypeVar, Unpack

from barnabas.client import arguments
from barnabas.client.channel import Seams, system_seams
from barnabas.client.cluster import Cluster
from barnabas.client.config import ConsumerConfig, ConsumerOptions, configure
from barnabas.client.consumer.assignment import AssignedPartition, Assignment, Reading
from barnabas.client.consumer.fetched import ConsumerRecord, FetchedBytes
from barnabas.client.consumer.fetcher import Fetcher
from barnabas.client.errors import ConcurrentUse, NoOffsetForPartition
from barnabas.client.offsets import (
    EARLIEST,
    LATEST,
    READ_COMMITTED,
    READ_UNCOMMITTED,
    OffsetAndTimestamp,
    OffsetFinder,
)
from barnabas.errors import InvalidGroupId
from barnabas.protocol.api import METADATA
from barnabas.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)
from barnabas.types import TopicPartition

if TYPE_CHECKING:
    from barnabas.client.consumer.commits import Commits, Offsets, WhenCommitted
    from barnabas.client.consumer.committed import GroupMetadata, OffsetAndMetadata
    from barnabas.client.consumer.group import Group
    from barnabas.client.consumer.subscription import RebalanceListener

T = TypeVar("T")

_COMMITTED = "committed"  # start at the group's offset, else by auto.offset.reset


class Consumer:
    """Reads partitions; options are Kafka's, with underscores (see `ConsumerOptions`)."""

    def __init__(
        self,
        bootstrap_servers: str | Sequence[str],
        *,
        seams: Seams | None = None,
        **options: Unpack[ConsumerOptions],
    ) -> None:
        common, self._config = configure(ConsumerConfig, options)
        self._cluster = Cluster(bootstrap_servers, common, seams or system_seams())
        self._cluster.metadata.creates_topics = self._config.allow_auto_create_topics
        self._clock = self._cluster.seams.clock
        self._api_timeout_ms = common.default_api_timeout_ms
        self._assignment = Assignment(
            _COMMITTED if self._config.group_id else self._config.auto_offset_reset
        )
        self._fetcher = Fetcher(self._cluster, self._config, self._assignment)
        committed = self._config.isolation_level == "read_committed"
        self._offsets = OffsetFinder(
            self._cluster, READ_COMMITTED if committed else READ_UNCOMMITTED
        )
        self._locating: asyncio.Task[None] | None = None
        self._cluster.tasks.on_failure(lambda error: self._wake())
        self._reading: Reading | None = None  # the chunk that the last poll did not exhaust
        self._is_polling = False
        self._nap: asyncio.Timeout | None = None  # around a wait that the group may end
        self._commits: Commits | None = None
        self._group: Group | None = None
        if self._config.group_id:
            self._make_group()

    def _make_group(self) -> None:
        # Imported only here: consumers without a group, such as Spark's, start without it.
        from barnabas.client.consumer.commits import Commits
        from barnabas.client.consumer.group import Group
        from barnabas.client.coordinator import GROUP, CoordinatorFinder

        coordinators = CoordinatorFinder(self._cluster, GROUP)
        self._commits = Commits(self._cluster, self._config, coordinators, self._assignment)
        self._group = Group(
            self._cluster, self._config, coordinators, self._assignment, self._commits, self._wake
        )

    # ---- life ----

    async def start(self) -> None:
        """Connect. Raises NoBrokersAvailable."""
        await self._cluster.start()

    async def close(self, *, autocommit: bool = True) -> None:
        """Commit (with `enable.auto.commit`, unless `autocommit` is false), leave, disconnect.

        A static member does not leave: it may be back within `session.timeout.ms`.
        """
        if not arguments.flag(autocommit, "autocommit"):
            self.stop_auto_commit()
        try:
            await self._let_go("the consumer was closed")
        finally:
            if self._locating is not None:
                self._locating.cancel()
                await asyncio.gather(self._locating, return_exceptions=True)
            if self._commits is not None:
                await self._commits.close()
            await self._fetcher.close()
            await self._cluster.close()

    def stop_auto_commit(self) -> None:
        """Stop auto commit: records that were read may not have been processed."""
        if self._commits is not None:
            self._commits.stop_auto_commit()

    async def __aenter__(self) -> Consumer:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close; after an exception without auto commit: not all records may be processed."""
        await self.close(autocommit=kind is None)

    # ---- what to read ----

    def subscribe(
        self,
        topics: Iterable[str] | re.Pattern[str],
        listener: RebalanceListener | None = None,
    ) -> None:
        """Share these topics with the other members of the group, from the next `poll` on.

        Names, or a compiled pattern that must match a whole name: topics created later are found
        within `metadata.max.age.ms`. Replaces the last subscription. Raises InvalidGroupId without
        a `group.id`, ValueError after `assign`.
        """
        from barnabas.client.consumer.subscription import Subscription, checked_listener

        group = self._required_group()
        checked_listener(listener)
        if len(self._assignment) and not group.is_subscribed:
            raise ValueError("partitions are assigned by hand: unsubscribe() first")
        exclude = self._config.exclude_internal_topics
        group.subscribe(Subscription(topics, listener, exclude_internal=exclude))

    async def unsubscribe(self) -> None:
        """Leave the group, as `close` does, and drop all partitions, assigned by hand or not."""
        await self._let_go("the consumer unsubscribed")
        self._assignment.replace([])

    def subscription(self) -> list[str]:
        """The topics subscribed to; of a pattern the known topics that it matches."""
        return list(self._group.names()) if self._group is not None else []

    def assign(self, topic_partitions: Iterable[TopicPartition]) -> None:
        """Read these partitions from now on; those assigned before keep their positions.

        Other consumers do not matter: a `group.id` only selects the offsets to start at and to
        commit. Raises ValueError after `subscribe`.
        """
        names = arguments.topic_partitions(topic_partitions)
        if self._group is not None and self._group.is_subscribed:
            raise ValueError("this consumer is subscribed: unsubscribe() first")
        if self._group is not None:
            self._group.reads_alone()
        self._assignment.replace(names)
        self._cluster.metadata.track(topic for topic, _ in names)

    def assignment(self) -> list[TopicPartition]:
        return self._assignment.names()

    def seek(self, topic_partition: TopicPartition, offset: int) -> None:
        """Go on at this offset; ValueError for a negative one or a partition not assigned."""
        self._state(topic_partition).seek(arguments.whole_number(offset, "offset"))

    async def seek_to_beginning(self, *topic_partitions: TopicPartition) -> None:
        """Go to the first record of these partitions (of all, if none is named)."""
        await self._seek_by("earliest", topic_partitions)

    async def seek_to_end(self, *topic_partitions: TopicPartition) -> None:
        """Go to the end of these partitions (of all, if none is named)."""
        await self._seek_by("latest", topic_partitions)

    async def position(self, topic_partition: TopicPartition) -> int:
        """The offset of the next record that `poll` returns of this partition."""
        state = self._state(topic_partition)
        if state.reset is not None:
            await self._find_positions([state])
        return state.position

    def positions(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """The position in each assigned partition, where it is known.

        With the leader epoch of the last record, as `commit_sync()` commits them. For
        `send_offsets_to_transaction`: a consumer that starts there recognizes a leader that has
        been replaced, and waits for its successor (KIP-320).
        """
        from barnabas.client.consumer.commits import (
            positions,  # only for groups, as in the constructor
        )

        return positions(self._assignment)

    def pause(self, *topic_partitions: TopicPartition) -> None:
        """Return no records of these partitions until `resume`."""
        for state in [self._state(each) for each in topic_partitions]:
            state.paused = True

    def resume(self, *topic_partitions: TopicPartition) -> None:
        for state in [self._state(each) for each in topic_partitions]:
            state.paused = False

    def _state(self, topic_partition: TopicPartition) -> AssignedPartition:
        """The partition's state. Raises TypeError, ValueError if it is not assigned."""
        return self._assignment.of(arguments.topic_partition(topic_partition))

    # ---- reading ----

    async def poll(self, timeout_ms: int) -> list[ConsumerRecord]:
        """At most `max.poll.records` records; returns as soon as there is one, else empty.

        Takes part in the group's rebalances; for auto commit, records of earlier polls count as
        processed. Raises CorruptData, NoOffsetForPartition (LogTruncated where a log lost records
        that were read), the KafkaError that ends a partition or keeps this consumer out of its
        group, and the exceptions of a rebalance listener.
        """
        return await self._polled(lambda: self._take(self._config.max_poll_records), timeout_ms)

    async def fetch_batches(self, timeout_ms: int) -> dict[TopicPartition, FetchedBytes]:
        """Whole record batches as bytes, of each partition that has some; else empty.

        Positions move past them, as with `poll`. The first batch may begin before the position:
        skip records below `FetchedBytes.offset`. Checksums are not verified here.
        """
        return await self._polled(self._take_raw, timeout_ms)

    async def _polled(self, take: Callable[[], T], timeout_ms: int) -> T:
        """The result of `take`, once there is one or time is up."""
        arguments.duration(timeout_ms, "timeout_ms")
        if self._is_polling:
            raise ConcurrentUse("another task is polling with this consumer: one at a time")
        self._is_polling = True
        try:
            deadline_ms = self._clock.monotonic_ms() + int(timeout_ms)
            if self._commits is not None:
                self._commits.auto_commit()
            if self._group is None or not self._group.is_subscribed:
                return await self._taken(take, deadline_ms)
            self._group.poll_began()
            try:
                return await self._taken(take, deadline_ms)
            finally:
                self._group.poll_ended()
        finally:
            self._is_polling = False

    async def _taken(self, take: Callable[[], T], deadline_ms: int) -> T:
        while True:
            self._cluster.tasks.check()
            if not await self._is_settled(deadline_ms):
                return take()
            self._fetcher.follow_leaders()
            found = take()
            if found:
                self._fetcher.send_fetches(ahead=True)
                return found
            if not await self._advance(deadline_ms):
                return take()

    async def _is_settled(self, deadline_ms: int) -> bool:
        """Whether the partitions may be read: assigned by hand, or no rebalance is under way."""
        if self._group is None or not self._group.is_subscribed:
            return True
        return await self._group.poll(deadline_ms)

    async def _advance(self, deadline_ms: int) -> bool:
        """Look up missing positions, fetch, and wait for news; False when time is up."""
        if not await self._locate(deadline_ms):
            return False
        self._fetcher.send_fetches()
        try:
            async with asyncio.timeout(None) as self._nap:
                return await self._fetcher.wait(deadline_ms)
        except TimeoutError:
            return True  # the group has something to do
        finally:
            self._nap = None

    def _wake(self) -> None:
        """End the wait for records: the group needs this consumer."""
        if self._nap is not None and not self._nap.expired():
            self._nap.reschedule(asyncio.get_running_loop().time())

    async def _locate(self, deadline_ms: int) -> bool:
        """Look up missing positions; False when time is up (it goes on: see `poll(0)`)."""
        if self._locating is None:
            missing = [state for state in self._assignment if state.reset is not None]
            if not missing:
                return True
            work = self._find_positions(missing)
            self._locating = asyncio.get_running_loop().create_task(work)
        try:
            async with asyncio.timeout(max(deadline_ms - self._clock.monotonic_ms(), 0) / 1000):
                await asyncio.shield(self._locating)
        except TimeoutError:
            return False
        finally:
            if self._locating.done():
                self._locating = None
        return True

    def _take(self, most: int) -> list[ConsumerRecord]:
        """Up to `most` buffered records; raises a pending error only if there are none."""
        records: list[ConsumerRecord] = []
        while len(records) < most:
            reading = self._reading or self._next_reading()
            if reading is None:
                break
            self._reading = reading if reading.take_into(records, most) else None
        if not records:
            self._fetcher.raise_error()
        return records

    def _next_reading(self) -> Reading | None:
        following = self._fetcher.next_chunk()
        if following is None:
            return None
        state, chunk = following
        return Reading(state, chunk, check_crcs=self._config.check_crcs)

    def _take_raw(self) -> dict[TopicPartition, FetchedBytes]:
        """One fetched chunk of each partition; raises a pending error only if there is none."""
        if self._reading is not None:
            self._reading.give_back()
            self._reading = None
        fetched: dict[TopicPartition, FetchedBytes] = {}
        for state, chunk in self._fetcher.next_chunks():
            state.advance(chunk.next_offset, chunk.last_epoch)
            fetched[state.topic_partition] = state.describe(chunk)
        if not fetched:
            self._fetcher.raise_error()
        return fetched

    # ---- the group ----

    async def commit_sync(self, offsets: Offsets | None = None) -> None:
        """Commit these offsets, or all positions: returns when they are safe (CO-4).

        An offset is that of the next record to read. Raises CommitFailed when the group has given
        the partitions to others, RebalanceInProgress when it is about to, and other errors of the
        coordinator; transient ones are retried for `default.api.timeout.ms`.
        """
        await self._required_commits().commit(offsets)

    def commit_async(
        self, offsets: Offsets | None = None, when_done: WhenCommitted | None = None
    ) -> None:
        """Commit in the background, by one attempt, in the order of the calls.

        `when_done(offsets, error)` is called by the event loop; without it an error is only logged.
        """
        if when_done is not None:
            arguments.callback(when_done, "when_done")
        self._required_commits().commit_later(offsets, when_done)

    async def committed(
        self, *topic_partitions: TopicPartition
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """The group's committed offsets for these partitions; None where it has none."""
        names = arguments.topic_partitions(topic_partitions)
        found = await self._required_commits().committed(names)
        return {name: found.get(name) for name in names}

    def group_metadata(self) -> GroupMetadata:
        """This consumer's membership of its group, for `send_offsets_to_transaction`."""
        return self._required_group().metadata()

    async def _let_go(self, reason: str) -> None:
        if self._group is not None and self._group.is_subscribed:
            await self._group.leave(reason)
        elif self._commits is not None and self._cluster.metadata.view.generation:
            await self._commits.settle()

    def _required_group(self) -> Group:
        if self._group is None:
            raise InvalidGroupId("this consumer has no group: give it a group.id")
        return self._group

    def _required_commits(self) -> Commits:
        self._required_group()
        assert self._commits is not None
        return self._commits

    # ---- positions and offsets ----

    async def beginning_offsets(
        self, topic_partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, int]:
        """The offset of each partition's first record (of its end, if it is empty)."""
        return await self._ends(topic_partitions, EARLIEST)

    async def end_offsets(
        self, topic_partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, int]:
        """The offset after each partition's last record that this consumer may read."""
        return await self._ends(topic_partitions, LATEST)

    async def offsets_for_times(
        self, timestamps: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """The first record not older than the timestamp (ms); None if all are older."""
        timestamps = {
            name: arguments.whole_number(timestamp_ms, "timestamps")
            for name, timestamp_ms in arguments.by_partition(timestamps, "timestamps").items()
        }
        found = await self._offsets.find(timestamps, self._api_timeout_ms)
        return {name: None if at.offset < 0 else at for name, at in found.items()}

    async def partitions_for(self, topic: str) -> list[int]:
        """The numbers of a topic's partitions, as a broker has them now. Raises
        UnknownTopicOrPartition."""
        self._cluster.metadata.forget(arguments.topic_name(topic))
        return list((await self._cluster.metadata.topic(topic, self._api_timeout_ms)).partitions)

    async def list_topics(self, topics: Iterable[str] | None = None) -> dict[str, list[int]]:
        """Topics with the numbers of their partitions: the existing ones of `topics`; without it
        every topic, internal ones too."""
        return {
            topic.name or "": sorted(each.partition_index for each in topic.partitions)
            for topic in await self._topics(topics)
        }

    async def topic_ids(self, topics: Iterable[str]) -> dict[str, bytes]:
        """The ids (KIP-516), 16 bytes each, of the existing topics that have one: a topic that is
        deleted and created again has another."""
        return {
            topic.name or "": bytes(topic.topic_id)
            for topic in await self._topics(topics)
            if any(topic.topic_id)
        }

    async def _topics(self, topics: Iterable[str] | None) -> list[MetadataResponseTopic]:
        wanted = None
        if topics is not None:
            names = dict.fromkeys(arguments.topic_names(topics))
            wanted = [MetadataRequestTopic(name=name) for name in names]

        async def attempt() -> list[MetadataResponseTopic]:
            request = MetadataRequest(topics=wanted, allow_auto_topic_creation=False)
            response = await self._cluster.call_any(METADATA, request, MetadataResponse)
            described = [topic for topic in response.topics if not topic.error_code]
            return sorted(described, key=lambda topic: topic.name or "")

        return await self._cluster.persist(attempt, self._api_timeout_ms)

    async def _ends(
        self, topic_partitions: Iterable[TopicPartition], which: int
    ) -> dict[TopicPartition, int]:
        timestamps = dict.fromkeys(arguments.topic_partitions(topic_partitions), which)
        found = await self._offsets.find(timestamps, self._api_timeout_ms)
        return {name: at.offset for name, at in found.items()}

    async def _seek_by(self, reset: str, topic_partitions: Sequence[TopicPartition]) -> None:
        names = topic_partitions or self._assignment.names()
        states = [self._state(name) for name in names]
        for state in states:
            state.seek_by(reset)
        await self._find_positions(states)

    async def _find_positions(self, states: Sequence[AssignedPartition]) -> None:
        """Set the positions: to the group's offset, or by each partition's rule (CO-5)."""
        await self._go_to_committed([state for state in states if state.reset == _COMMITTED])
        states = [state for state in states if state.reset is not None]
        timestamps: dict[TopicPartition, int] = {}
        for state in states:
            if state.reset == "none":
                raise NoOffsetForPartition(
                    f"no position for {state.topic_partition}, and auto.offset.reset is none: "
                    "seek to an offset, or set it to earliest or latest"
                )
            timestamps[state.topic_partition] = EARLIEST if state.reset == "earliest" else LATEST
        generations = [state.generation for state in states]
        found = await self._offsets.find(timestamps, self._api_timeout_ms)
        for state, generation in zip(states, generations, strict=True):
            if state.generation == generation:
                at = found[state.topic_partition]
                state.seek(at.offset, at.leader_epoch)

    async def _go_to_committed(self, states: Sequence[AssignedPartition]) -> None:
        if not states:
            return
        commits = self._required_commits()
        found = await commits.committed(state.topic_partition for state in states)
        commits.start_at(found)
        for state in states:
            if state.reset != _COMMITTED:
                continue  # the user called seek meanwhile
            if state.topic_partition in found:
                at = found[state.topic_partition]
                state.seek(at.offset, at.leader_epoch)
            else:
                state.seek_by(self._config.auto_offset_reset)
