"""The consumer by assignment: whoever reads says which partitions, and from where.

    async with Consumer("localhost:9092", auto_offset_reset="earliest") as consumer:
        consumer.assign([TopicPartition("test", 0)])
        records = await consumer.poll(1_000)

Records of a partition come in order, each once, from its position on. Used by one task at a time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import Unpack

from barnabas.client.assignment import AssignedPartition, Assignment, Reading
from barnabas.client.channel import Seams, system_seams
from barnabas.client.cluster import Cluster
from barnabas.client.config import ConsumerConfig, ConsumerOptions, configure
from barnabas.client.errors import NoOffsetForPartition
from barnabas.client.fetched import ConsumerRecord, FetchedBytes
from barnabas.client.fetcher import Fetcher
from barnabas.client.offsets import (
    EARLIEST,
    LATEST,
    READ_COMMITTED,
    READ_UNCOMMITTED,
    OffsetAndTimestamp,
    OffsetFinder,
)
from barnabas.protocol.api import METADATA
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataResponse
from barnabas.types import TopicPartition


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
        self._assignment = Assignment(self._config.auto_offset_reset)
        self._fetcher = Fetcher(self._cluster, self._config, self._assignment)
        committed = self._config.isolation_level == "read_committed"
        self._offsets = OffsetFinder(
            self._cluster, READ_COMMITTED if committed else READ_UNCOMMITTED
        )
        self._locating: asyncio.Task[None] | None = None
        self._reading: Reading | None = None  # the chunk that the last poll did not exhaust

    # ---- life ----

    async def start(self) -> None:
        """Connect. Raises NoBrokersAvailable."""
        await self._cluster.start()

    async def close(self) -> None:
        if self._locating is not None:
            self._locating.cancel()
            await asyncio.gather(self._locating, return_exceptions=True)
        await self._fetcher.close()
        await self._cluster.close()

    async def __aenter__(self) -> Consumer:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    # ---- what to read ----

    def assign(self, topic_partitions: Iterable[TopicPartition]) -> None:
        """Read these partitions from now on; those assigned before keep their positions."""
        names = [TopicPartition(*name) for name in topic_partitions]
        self._assignment.replace(names)
        self._cluster.metadata.track(topic for topic, _ in names)

    def assignment(self) -> list[TopicPartition]:
        return self._assignment.names()

    def seek(self, topic_partition: TopicPartition, offset: int) -> None:
        """Go on at this offset; ValueError for a negative one or a partition not assigned."""
        if offset < 0:
            raise ValueError(f"offset {offset}: must be 0 or more")
        self._assignment.of(topic_partition).seek(offset)

    async def seek_to_beginning(self, *topic_partitions: TopicPartition) -> None:
        """Go to the first record of these partitions (of all, if none is named)."""
        await self._seek_by("earliest", topic_partitions)

    async def seek_to_end(self, *topic_partitions: TopicPartition) -> None:
        """Go behind the last record of these partitions (of all, if none is named)."""
        await self._seek_by("latest", topic_partitions)

    async def position(self, topic_partition: TopicPartition) -> int:
        """The offset of the next record that `poll` gives of this partition."""
        state = self._assignment.of(topic_partition)
        if state.reset is not None:
            await self._find_positions([state])
        return state.position

    def pause(self, *topic_partitions: TopicPartition) -> None:
        """Give no records of these partitions until `resume`."""
        for topic_partition in topic_partitions:
            self._assignment.of(topic_partition).paused = True

    def resume(self, *topic_partitions: TopicPartition) -> None:
        for topic_partition in topic_partitions:
            self._assignment.of(topic_partition).paused = False

    # ---- reading ----

    async def poll(self, timeout_ms: int) -> list[ConsumerRecord]:
        """At most `max.poll.records` records; returns as soon as there is one, else empty.

        Raises CorruptData, NoOffsetForPartition, and the KafkaError that ends a partition.
        """
        deadline_ms = self._clock.now_ms() + timeout_ms
        while True:
            records = self._take(self._config.max_poll_records)
            if records:
                self._fetcher.send_fetches(ahead=True)
                return records
            if not await self._advance(deadline_ms):
                return self._take(self._config.max_poll_records)

    async def fetch_batches(self, timeout_ms: int) -> dict[TopicPartition, FetchedBytes]:
        """Whole record batches as bytes, of each partition that has some; else empty.

        Positions move behind them, as `poll` does. The first batch may begin before the position:
        skip records below `FetchedBytes.offset`. Checksums are not looked at here.
        """
        deadline_ms = self._clock.now_ms() + timeout_ms
        while True:
            fetched = self._take_raw()
            if fetched:
                self._fetcher.send_fetches(ahead=True)
                return fetched
            if not await self._advance(deadline_ms):
                return self._take_raw()

    async def _advance(self, deadline_ms: int) -> bool:
        """Find what positions are missing, fetch, and wait for news; False when time is up."""
        if not await self._locate(deadline_ms):
            return False
        self._fetcher.send_fetches()
        return await self._fetcher.wait(deadline_ms)

    async def _locate(self, deadline_ms: int) -> bool:
        """Find what positions are missing; False when time is up (it goes on: see `poll(0)`)."""
        if self._locating is None:
            missing = [state for state in self._assignment if state.reset is not None]
            if not missing:
                return True
            work = self._find_positions(missing)
            self._locating = asyncio.get_running_loop().create_task(work)
        try:
            async with asyncio.timeout(max(deadline_ms - self._clock.now_ms(), 0) / 1000):
                await asyncio.shield(self._locating)
        except TimeoutError:
            return False
        finally:
            if self._locating.done():
                self._locating = None
        return True

    def _take(self, most: int) -> list[ConsumerRecord]:
        """Up to so many records of what is buffered; raises only if there is not one."""
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
        """All that is buffered; raises only if there is nothing."""
        if self._reading is not None:
            self._reading.give_back()
            self._reading = None
        fetched: dict[TopicPartition, FetchedBytes] = {}
        while (following := self._fetcher.next_chunk()) is not None:
            state, chunk = following
            state.position = chunk.next_offset
            before = fetched.get(state.topic_partition)
            raw = state.describe(chunk)
            fetched[state.topic_partition] = raw if before is None else before.joined(raw)
        if not fetched:
            self._fetcher.raise_error()
        return fetched

    # ---- positions and offsets ----

    async def beginning_offsets(
        self, topic_partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, int]:
        """The offset of each partition's first record (of its end, if it is empty)."""
        return await self._ends(topic_partitions, EARLIEST)

    async def end_offsets(
        self, topic_partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, int]:
        """The offset behind each partition's last record that this consumer may read."""
        return await self._ends(topic_partitions, LATEST)

    async def offsets_for_times(
        self, timestamps: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """The first record not older than the timestamp (ms); None if all are older."""
        for topic_partition, timestamp_ms in timestamps.items():
            if timestamp_ms < 0:
                raise ValueError(f"timestamp {timestamp_ms} for {topic_partition}: negative")
        found = await self._offsets.find(timestamps, self._api_timeout_ms)
        return {name: None if at.offset < 0 else at for name, at in found.items()}

    async def partitions_for(self, topic: str) -> list[int]:
        """The numbers of a topic's partitions, asked anew. Raises UnknownTopicOrPartition."""
        self._cluster.metadata.forget(topic)
        return list((await self._cluster.metadata.topic(topic, self._api_timeout_ms)).partitions)

    async def list_topics(self) -> dict[str, list[int]]:
        """Every topic, internal ones too, with the numbers of its partitions."""

        async def attempt() -> dict[str, list[int]]:
            request = MetadataRequest(topics=None, allow_auto_topic_creation=False)
            response = await self._cluster.call_any(METADATA, request, MetadataResponse)
            return {
                topic.name or "": sorted(each.partition_index for each in topic.partitions)
                for topic in sorted(response.topics, key=lambda topic: topic.name or "")
                if not topic.error_code
            }

        return await self._cluster.persist(attempt, self._api_timeout_ms)

    async def _ends(
        self, topic_partitions: Iterable[TopicPartition], which: int
    ) -> dict[TopicPartition, int]:
        asked = {TopicPartition(*name): which for name in topic_partitions}
        found = await self._offsets.find(asked, self._api_timeout_ms)
        return {name: at.offset for name, at in found.items()}

    async def _seek_by(self, reset: str, topic_partitions: Sequence[TopicPartition]) -> None:
        names = topic_partitions or self._assignment.names()
        states = [self._assignment.of(name) for name in names]
        for state in states:
            state.seek_by(reset)
        await self._find_positions(states)

    async def _find_positions(self, states: Sequence[AssignedPartition]) -> None:
        """Settle where to begin, by each partition's rule (CO-5)."""
        asked: dict[TopicPartition, int] = {}
        for state in states:
            if state.reset == "none":
                raise NoOffsetForPartition(
                    f"no position for {state.topic_partition} and auto.offset.reset is none: "
                    "seek to an offset, or set it to earliest or latest"
                )
            asked[state.topic_partition] = EARLIEST if state.reset == "earliest" else LATEST
        generations = [state.generation for state in states]
        found = await self._offsets.find(asked, self._api_timeout_ms)
        for state, generation in zip(states, generations, strict=True):
            if state.generation == generation:
                state.seek(found[state.topic_partition].offset)
