"""Implements a consumer's polls, which return records as objects, bytes or tables.

    poll -> auto commit -> rebalance if one is due -> buffered records, or fetch and wait

Only one poll runs at a time. Records are taken from the chunks that the fetcher has buffered.
`_reading` is the chunk in use, from which an iteration takes records without polling for each
record.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Container
from typing import TYPE_CHECKING, Any, Self, TypeVar

from barnabas.client import arguments
from barnabas.client.config import ConsumerConfig
from barnabas.client.consumer.assignment import AssignedPartition, Assignment
from barnabas.client.consumer.fetched import ConsumerRecord, FetchedBytes
from barnabas.client.consumer.fetcher import Fetcher
from barnabas.client.consumer.lookups import Lookups
from barnabas.client.consumer.positions import Positions
from barnabas.client.consumer.reading import Deserialize, Reading
from barnabas.client.errors import ClientClosed, ConcurrentUse
from barnabas.clock import Clock
from barnabas.errors import CorruptData
from barnabas.types import TopicPartition

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa  # type: ignore[import-untyped]  # ships neither stubs nor py.typed

    from barnabas.client.consumer.commits import Commits
    from barnabas.client.consumer.group import Group
    from barnabas.client.interceptors import Interceptors

T = TypeVar("T")

_ITERATION_POLL_MS = 60_000  # how long each poll of an iteration waits


class Polls(Lookups):
    """Provides the methods of `Consumer` that read records."""

    _clock: Clock
    _config: ConsumerConfig
    _assignment: Assignment
    _fetcher: Fetcher
    _positions: Positions
    _commits: Commits | None
    _group: Group | None
    _deserialize: Deserialize | None
    _interceptors: Interceptors | None

    def __init__(self) -> None:
        self._reading: Reading | None = None  # the chunk that the last poll did not exhaust
        self._set_aside: list[Reading] = []  # partly read chunks of partitions not requested
        self._poller: asyncio.Task[Any] | None = None  # the task that is inside a poll
        self._poll_over: asyncio.Future[None] | None = None
        self._nap: asyncio.Timeout | None = None  # the timeout of a wait that the group may end
        self._credit = 0  # records that an iteration may take before its next poll
        self._has_started = False
        self._has_source = False  # true once anything has been subscribed to or assigned
        self._is_closed = False  # whether further polls are rejected
        self._has_ended = False  # `close` was called

    def _state(self, topic_partition: tuple[str, int]) -> AssignedPartition:
        """Return a partition's state. Raises TypeError, or ValueError if it is not assigned."""
        return self._assignment.of(arguments.topic_partition(topic_partition))

    def _states(
        self, topic_partitions: tuple[arguments.Partitions, ...]
    ) -> list[AssignedPartition]:
        return [self._assignment.of(name) for name in arguments.partitions(topic_partitions)]

    # ---- reading ----

    async def poll(
        self, timeout_ms: float = 0, max_records: int | None = None
    ) -> list[ConsumerRecord]:
        """Return up to `max.poll.records` records once any are available, or none at the timeout.

        Polling also takes part in the rebalances of the group. With auto commit, the records of
        earlier polls count as processed.

        Args:
            timeout_ms: how long to wait for the first record.
            max_records: replaces `max.poll.records`.

        Raises:
            RecordDeserializationError: a record cannot be deserialized; the records before it are
                returned first. The position stays at the record; use `seek` to skip it.
            CorruptData: a record is damaged; raised in the same way.
            NoOffsetForPartition: there is no position (LogTruncated if a log lost records that were
                read).
            UnknownPartition: the topic has no partition with that number. Later polls read the
                other partitions and keep looking for it.
            FencedInstanceId: another consumer now has its `group.instance.id`. Later polls also
                raise it; otherwise, the two would keep taking the id from each other.
            KafkaError: a permanent error of a partition, or one that keeps this consumer out of
                its group.
            ClientClosed: the consumer was closed, earlier or by another task.
            ValueError: nothing was ever subscribed to or assigned.
            Exception: whatever a rebalance listener raises.
        """
        return await self._poll_records(self._most(max_records), None, timeout_ms)

    async def getmany(
        self,
        *topic_partitions: arguments.Partitions,
        timeout_ms: float = 0,
        max_records: int | None = None,
    ) -> dict[TopicPartition, list[ConsumerRecord]]:
        """Poll, and return records by partition (only of these partitions, if any are given)."""
        only = self._only(topic_partitions)
        records = await self._poll_records(self._most(max_records), only, timeout_ms)
        found: dict[TopicPartition, list[ConsumerRecord]] = {}
        for record in records:
            found.setdefault(record.topic_partition, []).append(record)
        return found

    async def getone(self, *topic_partitions: arguments.Partitions) -> ConsumerRecord:
        """Wait for the next record (from these partitions, if any are given), and return it.

        The errors are the same as for `poll`. The position advances record by record.
        """
        only = self._only(topic_partitions)
        while True:
            records = await self._poll_records(1, only, _ITERATION_POLL_MS)
            if records:
                # Take further records without a poll for each, unless an interceptor has to see
                # each record as it is returned.
                if only is None and self._interceptors is None:
                    self._credit = self._config.max_poll_records - 1
                return records[0]

    def __aiter__(self) -> Self:
        """Iterate over the records until the consumer is closed: `async for record in consumer`.

        With auto commit, a record counts as processed once the next record is requested. After a
        `break`, the last record counts as processed only at the next poll or `close`. The errors
        are the same as for `poll`, and the iteration may be continued after an error.
        """
        return self

    async def __anext__(self) -> ConsumerRecord:
        record = self.next_buffered()
        if record is not None:
            return record
        try:
            return await self.getone()
        except ClientClosed:
            if self._is_closed:
                raise StopAsyncIteration from None
            raise

    def next_buffered(self) -> ConsumerRecord | None:
        """Return the next record of an iteration, or None if a poll must be made first.

        A poll must be made after every `max.poll.records` records. This method needs no event loop.
        """
        # While a poll is running (in another task), the chunk in use may be given back at any time.
        if self._credit <= 0 or self._reading is None or self._poller is not None:
            return None
        record = self._reading.next_record()
        self._credit = 0 if record is None else self._credit - 1
        return record

    def _most(self, max_records: int | None) -> int:
        if max_records is None:
            return self._config.max_poll_records
        return arguments.whole_number(max_records, "max_records", least=1)

    def _only(
        self, topic_partitions: tuple[arguments.Partitions, ...]
    ) -> frozenset[TopicPartition] | None:
        """Return the requested partitions. Raises ValueError if one of them is not assigned."""
        if not topic_partitions:
            return None
        return frozenset(state.topic_partition for state in self._states(topic_partitions))

    async def _poll_records(
        self, most: int, only: Container[TopicPartition] | None, timeout_ms: float
    ) -> list[ConsumerRecord]:
        self._credit = 0
        records = await self._poll(lambda: self._take(most, only), timeout_ms)
        if records and self._interceptors is not None:
            return self._interceptors.on_consume(records)
        return records

    async def fetch_batches(self, timeout_ms: float = 0) -> dict[TopicPartition, FetchedBytes]:
        """Return whole record batches as bytes, by partition, or none if the time runs out.

        Like `poll`, this moves the positions past the batches. The first batch may begin before the
        position, so the caller must skip the records below `FetchedBytes.offset`. Checksums are not
        verified.
        """
        return await self._poll(self._take_raw, timeout_ms)

    async def poll_arrow(self, timeout_ms: float = 0, *, with_headers: bool = False) -> pa.Table:
        """Return the fetched records as a `pyarrow.Table`. The table is empty if the time runs out.

        The columns are topic, partition (int32), offset (int64), timestamp (ms, UTC),
        timestamp_type (int32: 0 if set by the producer, 1 if set by the broker, -1 if there is
        none), key and value (binary). With `with_headers`, there is also a column named headers, a
        list of structs of key and value.

        Like `poll`, this method takes part in rebalances and commits, and moves the positions past
        the records in the table. It returns whole fetches (up to `max.partition.fetch.bytes` per
        partition), however many records they contain. Keys and values are bytes, because
        deserializers and interceptors are not used.

        Raises:
            MissingLibrary: pyarrow or numpy is not installed.
            CorruptData: data is damaged; the positions stay where they were, and `poll` returns the
            records before the damage.
        """
        from barnabas.client.consumer.tables import ARROW, require, table_of

        arguments.flag(with_headers, "with_headers")
        require("poll_arrow", ARROW)
        self._credit = 0
        fetched = await self._poll(self._take_raw, timeout_ms)
        check_crcs = self._config.check_crcs
        try:
            return table_of(fetched, with_headers=with_headers, check_crcs=check_crcs)
        except CorruptData:
            # The positions are past the whole fetch; reset them to follow the last returned record.
            for name, chunk in fetched.items():
                self._state(name).seek(chunk.offset)
            raise

    async def poll_pandas(
        self, timeout_ms: float = 0, *, with_headers: bool = False
    ) -> pd.DataFrame:
        """Return the records as a `pandas.DataFrame`. `poll_arrow` is faster for large results.

        The columns and their dtypes are topic (object, str; pandas 3: str), partition (int32),
        offset (int64), timestamp (datetime64[ms, UTC]), timestamp_type (int32), key and value
        (object, bytes or None). With `with_headers`, there is also a column named headers (object:
        an array of dicts with key and value, or None if a record has no headers). The index numbers
        the rows.

        Raises:
            MissingLibrary: pandas, pyarrow or numpy is not installed.
            CorruptData: as in `poll_arrow`.

        Example::

            frame = await consumer.poll_pandas(1_000)
            print(frame.groupby("partition")["offset"].max())
        """
        from barnabas.client.consumer.tables import PANDAS, require

        require("poll_pandas", PANDAS)
        table = await self.poll_arrow(timeout_ms, with_headers=with_headers)
        frame: pd.DataFrame = table.to_pandas()
        return frame

    async def _poll(self, take: Callable[[], T], timeout_ms: float) -> T:
        """Return the result of `take` once it is not empty, or when the time is up."""
        arguments.duration(timeout_ms, "timeout_ms")
        if self._poller is not None:
            raise ConcurrentUse(
                "another task is polling this consumer: only one task may poll at a time"
            )
        self._check_open()
        if not self._has_started:
            raise ClientClosed(
                "the consumer is not running: call start() first, or use `async with`"
            )
        if not self._has_source:
            raise ValueError("nothing to read: subscribe to topics or assign partitions first")
        self._cluster.metadata.check_loop()
        task = asyncio.current_task()
        assert task is not None, "a coroutine runs in a task"
        self._poller = task
        self._poll_over = asyncio.get_running_loop().create_future()
        try:
            return await self._poll_in_group(take, self._clock.monotonic_ms() + int(timeout_ms))
        except asyncio.CancelledError:
            # `close` in another task cancels this poll. Pass on a cancellation by the user
            # unchanged.
            if self._is_closed and not task.uncancel():
                raise ClientClosed("the consumer was closed during the poll") from None
            raise
        finally:
            self._poller = None
            self._poll_over.set_result(None)

    def _check_open(self) -> None:
        if self._is_closed:
            raise ClientClosed("the consumer is closed: create a new one")

    async def _poll_in_group(self, take: Callable[[], T], deadline_ms: int) -> T:
        """Poll, and tell the group when the poll starts and ends (`max.poll.interval.ms`)."""
        if self._commits is not None:
            self._commits.auto_commit()
        if self._group is None or not self._group.is_subscribed:
            return await self._take_or_wait(take, deadline_ms)
        self._group.poll_began()
        try:
            return await self._take_or_wait(take, deadline_ms)
        finally:
            self._group.poll_ended()

    async def _take_or_wait(self, take: Callable[[], T], deadline_ms: int) -> T:
        # A poll may be served entirely from the buffers. One turn of the event loop sends the
        # fetches started by the last poll, so that the broker works while the user processes
        # records, and lets heartbeats run.
        await asyncio.sleep(0)
        while True:
            self._cluster.tasks.check()
            if not await self._is_settled(deadline_ms):
                return take()  # time is up, so return buffered records of kept partitions
            # Do this before returning anything, because a new leader makes positions doubtful
            # (KIP-320).
            self._fetcher.follow_leaders()
            found = take()
            if found:
                self._fetcher.send_fetches(ahead=True)
                return found
            if not await self._advance(deadline_ms):
                return take()

    async def _is_settled(self, deadline_ms: int) -> bool:
        """Complete any rebalance that is due. Returns False if the time runs out first."""
        if self._group is None or not self._group.is_subscribed:
            return True
        return await self._group.poll(deadline_ms)

    async def _advance(self, deadline_ms: int) -> bool:
        """Look up positions, fetch from the rest and wait. Returns False at the timeout."""
        self._positions.look_up(self._assignment)
        self._fetcher.send_fetches()
        # A timeout whose deadline `_wake` sets costs less than a task per wait.
        try:
            async with asyncio.timeout(None) as self._nap:
                return await self._fetcher.wait(deadline_ms)
        except TimeoutError:
            return True  # the group has something to do
        finally:
            self._nap = None

    def _wake(self) -> None:
        """Stop waiting for records, because the group needs this consumer."""
        if self._nap is not None and not self._nap.expired():
            self._nap.reschedule(asyncio.get_running_loop().time())

    def _take(
        self, most: int, only: Container[TopicPartition] | None = None
    ) -> list[ConsumerRecord]:
        """Take up to `most` buffered records. If there are none, raise a pending error."""
        records: list[ConsumerRecord] = []
        if self._group is not None and self._group.is_revoking:
            return records
        while len(records) < most:
            reading = self._next_reading(only)
            if reading is None:
                break
            self._reading = reading if reading.take_into(records, most) else None
        if not records:
            self._fetcher.raise_error()
        return records

    def _next_reading(self, only: Container[TopicPartition] | None) -> Reading | None:
        """Make a chunk of one of these partitions the chunk in use, and return it."""
        # Prefer a partly read chunk. Otherwise, the partition's records would be out of order.
        if self._reading is not None:
            if only is None or self._reading.state.topic_partition in only:
                return self._reading
            self._set_aside.append(self._reading)
            self._reading = None
        for reading in self._set_aside:
            if only is None or reading.state.topic_partition in only:
                self._set_aside.remove(reading)
                return reading
        following = self._fetcher.chunks.take(only)
        if following is None:
            return None
        state, chunk = following
        return Reading(
            state, chunk, check_crcs=self._config.check_crcs, deserialize=self._deserialize
        )

    def _take_raw(self) -> dict[TopicPartition, FetchedBytes]:
        """Take one fetched chunk of each partition. If there are none, raise a pending error."""
        # Refetch the rest of a partly read chunk, because it cannot be returned as bytes.
        for reading in (*self._set_aside, *filter(None, [self._reading])):
            reading.give_back()
        self._reading = None
        self._set_aside.clear()
        fetched: dict[TopicPartition, FetchedBytes] = {}
        if self._group is not None and self._group.is_revoking:
            return fetched
        for state, chunk in self._fetcher.chunks.take_each():
            state.advance(chunk.next_offset, chunk.last_epoch)
            fetched[state.topic_partition] = state.describe(chunk)
        if not fetched:
            self._fetcher.raise_error()
        return fetched
