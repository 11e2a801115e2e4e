"""Provides the blocking consumer for a single thread, which also calls its rebalance listener."""

from __future__ import annotations

import re
import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial, wraps
from types import TracebackType
from typing import TYPE_CHECKING, Concatenate, ParamSpec, Self, TypeVar, Unpack

from barnabas.client import arguments
from barnabas.client.config import ConsumerOptions, Servers
from barnabas.client.consumer.consumer import Consumer
from barnabas.client.consumer.fetched import ConsumerRecord, FetchedBytes
from barnabas.client.consumer.subscription import RebalanceListener, checked_listener
from barnabas.client.errors import ClientClosed, ConcurrentUse
from barnabas.client.offsets import OffsetAndTimestamp
from barnabas.client.sync.blocking import BlockingClient, documented_by
from barnabas.client.sync.user_thread import ListenerThere, UserThread
from barnabas.errors import BarnabasError
from barnabas.types import TopicPartition

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa  # type: ignore[import-untyped]  # ships neither stubs nor py.typed

    from barnabas.client.consumer.commits import Offsets, WhenCommitted
    from barnabas.client.consumer.committed import GroupMetadata, OffsetAndMetadata


P = ParamSpec("P")
T = TypeVar("T")
Method = Callable[Concatenate["SyncConsumer", P], T]


def _alone(method: Method[P, T]) -> Method[P, T]:
    """Reject a second thread during a call. Listeners may make calls in the same thread."""

    @wraps(method)
    def call(self: SyncConsumer, /, *args: P.args, **kwargs: P.kwargs) -> T:
        if not self._use.acquire(blocking=False):
            raise ConcurrentUse(
                f"{method.__name__}: another thread is using this consumer, which only one thread "
                "may use at a time: give each thread its own consumer"
            )
        try:
            return method(self, *args, **kwargs)
        finally:
            self._use.release()

    return call


@documented_by(Consumer)
class SyncConsumer(BlockingClient[Consumer]):
    """A `Consumer` with blocking methods, for one thread. Arguments and errors are the same.

        with SyncConsumer("localhost:9092", group_id="readers") as consumer:
            consumer.subscribe(["test"])
            for record in consumer:
                print(record.value)

    The only method that another thread may call is `close`, which ends the current poll or
    iteration.
    """

    def __init__(
        self, bootstrap_servers: Servers = None, **options: Unpack[ConsumerOptions]
    ) -> None:
        super().__init__(Consumer(bootstrap_servers, **options))
        self._user = UserThread(self._thread)
        self._use = threading.RLock()
        self._finished: deque[Callable[[], None]] = deque()  # commit callbacks that are due

    def __repr__(self) -> str:
        return f"<Sync{repr(self._client).removeprefix('<')}"

    def close(self, *, autocommit: bool = True) -> None:
        """Commit, leave and disconnect, as `Consumer.close` does. Any thread may call this method.

        It ends any poll or iteration in the reading thread.
        """
        arguments.flag(autocommit, "autocommit")
        if not self._use.acquire(blocking=False):
            # Another thread is using the consumer, so end its poll and wait for it to leave.
            with suppress(ClientClosed):
                self._thread.run(self._client.interrupt())
            self._use.acquire()
        try:
            self._close(autocommit=autocommit)
        finally:
            self._use.release()

    stop = close  # name used by other clients

    def _close(self, *, autocommit: bool) -> None:
        try:
            if not autocommit:
                self._thread.call(self._client.stop_auto_commit)
            self.unsubscribe()
        except ClientClosed:
            return
        finally:
            super().close()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close. After an exception, do not auto commit, because records may be unprocessed."""
        self.close(autocommit=kind is None)

    @_alone
    def subscribe(
        self, topics: Iterable[str] | re.Pattern[str], listener: RebalanceListener | None = None
    ) -> None:
        """Subscribe like `Consumer.subscribe`. The listener's plain methods run in this thread."""
        checked_listener(listener)
        there = None if listener is None else ListenerThere(listener, self._user)
        self._thread.call(lambda: self._client.subscribe(topics, there))

    @_alone
    def unsubscribe(self) -> None:
        self._user.run(self._client.unsubscribe())
        self._call_back()

    @_alone
    def subscription(self) -> list[str]:
        return self._thread.call(self._client.subscription)

    # ---- the group ----

    @_alone
    def commit_sync(self, offsets: Offsets | None = None) -> None:
        self._thread.run(self._client.commit_sync(offsets))
        self._call_back()

    commit = commit_sync  # name used by other clients

    @_alone
    def commit_async(
        self, offsets: Offsets | None = None, when_done: WhenCommitted | None = None
    ) -> None:
        """Commit in the background, like `Consumer.commit_async`.

        `when_done` is called by the next poll or commit of this thread.
        """
        if when_done is not None:
            arguments.callback(when_done, "when_done")
        callback = None if when_done is None else partial(self._note, when_done)
        self._thread.call(lambda: self._client.commit_async(offsets, callback))

    @_alone
    def committed(
        self, *topic_partitions: arguments.Partitions
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        names = arguments.partitions(topic_partitions)
        return self._thread.run(self._client.committed(*names))

    @_alone
    def group_metadata(self) -> GroupMetadata:
        return self._thread.call(self._client.group_metadata)

    def _note(
        self,
        when_done: WhenCommitted,
        offsets: dict[TopicPartition, OffsetAndMetadata],
        error: BarnabasError | None,
    ) -> None:
        self._finished.append(partial(when_done, offsets, error))

    def _call_back(self) -> None:
        while self._finished:
            self._finished.popleft()()

    # ---- positions ----

    @_alone
    def assign(self, topic_partitions: arguments.Partitions) -> None:
        names = arguments.partitions([topic_partitions])
        self._thread.call(lambda: self._client.assign(names))

    @_alone
    def assignment(self) -> list[TopicPartition]:
        return self._thread.call(self._client.assignment)

    @_alone
    def seek(self, topic_partition: tuple[str, int], offset: int) -> None:
        self._thread.call(lambda: self._client.seek(topic_partition, offset))

    @_alone
    def seek_to_beginning(self, *topic_partitions: arguments.Partitions) -> None:
        names = arguments.partitions(topic_partitions)
        self._thread.run(self._client.seek_to_beginning(*names))

    @_alone
    def seek_to_end(self, *topic_partitions: arguments.Partitions) -> None:
        names = arguments.partitions(topic_partitions)
        self._thread.run(self._client.seek_to_end(*names))

    @_alone
    def seek_to_committed(self, *topic_partitions: arguments.Partitions) -> None:
        names = arguments.partitions(topic_partitions)
        self._thread.run(self._client.seek_to_committed(*names))

    @_alone
    def position(self, topic_partition: tuple[str, int]) -> int:
        return self._thread.run(self._client.position(topic_partition))

    @_alone
    def positions(self) -> dict[TopicPartition, OffsetAndMetadata]:
        return self._thread.call(self._client.positions)

    @_alone
    def lag(self, *topic_partitions: arguments.Partitions) -> dict[TopicPartition, int]:
        names = arguments.partitions(topic_partitions)
        return self._thread.run(self._client.lag(*names))

    @_alone
    def current_lag(self, topic_partition: tuple[str, int]) -> int | None:
        return self._thread.call(lambda: self._client.current_lag(topic_partition))

    @_alone
    def highwater(self, topic_partition: tuple[str, int]) -> int | None:
        return self._thread.call(lambda: self._client.highwater(topic_partition))

    @_alone
    def pause(self, *topic_partitions: arguments.Partitions) -> None:
        names = arguments.partitions(topic_partitions)
        self._thread.call(lambda: self._client.pause(*names))

    @_alone
    def resume(self, *topic_partitions: arguments.Partitions) -> None:
        names = arguments.partitions(topic_partitions)
        self._thread.call(lambda: self._client.resume(*names))

    @_alone
    def paused(self) -> set[TopicPartition]:
        return self._thread.call(self._client.paused)

    # ---- reading ----

    @_alone
    def poll(self, timeout_ms: float = 0, max_records: int | None = None) -> list[ConsumerRecord]:
        self._call_back()
        return self._user.run(self._client.poll(timeout_ms, max_records))

    @_alone
    def getmany(
        self,
        *topic_partitions: arguments.Partitions,
        timeout_ms: float = 0,
        max_records: int | None = None,
    ) -> dict[TopicPartition, list[ConsumerRecord]]:
        self._call_back()
        work = self._client.getmany(
            *arguments.partitions(topic_partitions),
            timeout_ms=timeout_ms,
            max_records=max_records,
        )
        return self._user.run(work)

    @_alone
    def getone(self, *topic_partitions: arguments.Partitions) -> ConsumerRecord:
        self._call_back()
        return self._user.run(self._client.getone(*arguments.partitions(topic_partitions)))

    def __iter__(self) -> Self:
        """Iterate over the records until the consumer is closed: `for record in consumer`.

        As in `Consumer`, a record counts as processed once the next record is requested. Another
        thread can end the iteration with `close`.
        """
        return self

    @_alone
    def __next__(self) -> ConsumerRecord:
        # The loop changes a chunk in use only during a poll, and none is running.
        record = self._client.next_buffered()
        if record is not None:
            return record
        self._call_back()
        try:
            return self._user.run(self._client.getone())
        except ClientClosed:
            raise StopIteration from None

    @_alone
    def poll_arrow(self, timeout_ms: float = 0, *, with_headers: bool = False) -> pa.Table:
        self._call_back()
        return self._user.run(self._client.poll_arrow(timeout_ms, with_headers=with_headers))

    @_alone
    def poll_pandas(self, timeout_ms: float = 0, *, with_headers: bool = False) -> pd.DataFrame:
        self._call_back()
        return self._user.run(self._client.poll_pandas(timeout_ms, with_headers=with_headers))

    @_alone
    def fetch_batches(self, timeout_ms: float = 0) -> dict[TopicPartition, FetchedBytes]:
        self._call_back()
        return self._user.run(self._client.fetch_batches(timeout_ms))

    # ---- lookups ----

    @_alone
    def beginning_offsets(
        self, topic_partitions: arguments.Partitions
    ) -> dict[TopicPartition, int]:
        names = arguments.partitions([topic_partitions])
        return self._thread.run(self._client.beginning_offsets(names))

    @_alone
    def end_offsets(self, topic_partitions: arguments.Partitions) -> dict[TopicPartition, int]:
        names = arguments.partitions([topic_partitions])
        return self._thread.run(self._client.end_offsets(names))

    @_alone
    def offsets_for_times(
        self, timestamps: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        return self._thread.run(self._client.offsets_for_times(timestamps))

    @_alone
    def partitions_for(self, topic: str) -> list[int]:
        return self._thread.run(self._client.partitions_for(topic))

    partitions_for_topic = partitions_for  # name used by other clients

    def available_partitions_for(self, topic: str) -> list[int]:
        return self._thread.run(self._client.available_partitions_for(topic))

    available_partitions_for_topic = available_partitions_for  # name used by other clients

    @_alone
    def topics(self) -> set[str]:
        return self._thread.run(self._client.topics())

    @_alone
    def list_topics(self, topics: Iterable[str] | None = None) -> dict[str, list[int]]:
        return self._thread.run(self._client.list_topics(topics))

    @_alone
    def topic_ids(self, topics: Iterable[str]) -> dict[str, bytes]:
        return self._thread.run(self._client.topic_ids(topics))
