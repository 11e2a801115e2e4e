"""The consumer, blocking: for one thread, in which its rebalance listener is called as well."""

from __future__ import annotations

import re
import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial, wraps
from types import TracebackType
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar, Unpack

from barnabas.client import arguments
from barnabas.client.config import ConsumerOptions
from barnabas.client.consumer.consumer import Consumer
from barnabas.client.consumer.fetched import ConsumerRecord, FetchedBytes
from barnabas.client.consumer.subscription import RebalanceListener, checked_listener
from barnabas.client.errors import ClientClosed, ConcurrentUse
from barnabas.client.offsets import OffsetAndTimestamp
from barnabas.client.sync.blocking import BlockingClient
from barnabas.client.sync.user_thread import ListenerThere, UserThread
from barnabas.errors import BarnabasError
from barnabas.types import TopicPartition

if TYPE_CHECKING:
    from barnabas.client.consumer.commits import Offsets, WhenCommitted
    from barnabas.client.consumer.committed import GroupMetadata, OffsetAndMetadata


P = ParamSpec("P")
T = TypeVar("T")
Method = Callable[Concatenate["SyncConsumer", P], T]


def _alone(method: Method[P, T]) -> Method[P, T]:
    """Refuse a second thread while one is inside; the same one may re-enter, in a listener."""

    @wraps(method)
    def call(self: SyncConsumer, /, *args: P.args, **kwargs: P.kwargs) -> T:
        if not self._use.acquire(blocking=False):
            raise ConcurrentUse(
                f"{method.__name__}: another thread is using this consumer, which is for one at a "
                "time: give each thread a consumer of its own"
            )
        try:
            return method(self, *args, **kwargs)
        finally:
            self._use.release()

    return call


class SyncConsumer(BlockingClient[Consumer]):
    """A `Consumer` for one thread, with blocking methods."""

    def __init__(
        self, bootstrap_servers: str | Sequence[str], **options: Unpack[ConsumerOptions]
    ) -> None:
        super().__init__(Consumer(bootstrap_servers, **options))
        self._user = UserThread(self._thread)
        self._use = threading.RLock()
        self._finished: deque[Callable[[], None]] = deque()  # commits whose callbacks are due

    @_alone
    def close(self, *, autocommit: bool = True) -> None:
        """As `Consumer.close`."""
        arguments.flag(autocommit, "autocommit")
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
        """Close; after an exception without auto commit: not all records may be processed."""
        self.close(autocommit=kind is None)

    @_alone
    def subscribe(
        self, topics: Iterable[str] | re.Pattern[str], listener: RebalanceListener | None = None
    ) -> None:
        """As `Consumer.subscribe`; the listener's methods are plain ones, called in this thread."""
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

    @_alone
    def commit_sync(self, offsets: Offsets | None = None) -> None:
        """As `Consumer.commit_sync`."""
        self._thread.run(self._client.commit_sync(offsets))
        self._call_back()

    @_alone
    def commit_async(
        self, offsets: Offsets | None = None, when_done: WhenCommitted | None = None
    ) -> None:
        """As `Consumer.commit_async`; the next poll or commit of this thread calls `when_done`."""
        if when_done is not None:
            arguments.callback(when_done, "when_done")
        callback = None if when_done is None else partial(self._note, when_done)
        self._thread.call(lambda: self._client.commit_async(offsets, callback))

    @_alone
    def committed(
        self, *topic_partitions: TopicPartition
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        return self._thread.run(self._client.committed(*topic_partitions))

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

    @_alone
    def assign(self, topic_partitions: Iterable[TopicPartition]) -> None:
        names = arguments.topic_partitions(topic_partitions)
        self._thread.call(lambda: self._client.assign(names))

    @_alone
    def assignment(self) -> list[TopicPartition]:
        return self._thread.call(self._client.assignment)

    @_alone
    def seek(self, topic_partition: TopicPartition, offset: int) -> None:
        self._thread.call(lambda: self._client.seek(topic_partition, offset))

    @_alone
    def seek_to_beginning(self, *topic_partitions: TopicPartition) -> None:
        self._thread.run(self._client.seek_to_beginning(*topic_partitions))

    @_alone
    def seek_to_end(self, *topic_partitions: TopicPartition) -> None:
        self._thread.run(self._client.seek_to_end(*topic_partitions))

    @_alone
    def position(self, topic_partition: TopicPartition) -> int:
        return self._thread.run(self._client.position(topic_partition))

    @_alone
    def positions(self) -> dict[TopicPartition, OffsetAndMetadata]:
        return self._thread.call(self._client.positions)

    @_alone
    def pause(self, *topic_partitions: TopicPartition) -> None:
        self._thread.call(lambda: self._client.pause(*topic_partitions))

    @_alone
    def resume(self, *topic_partitions: TopicPartition) -> None:
        self._thread.call(lambda: self._client.resume(*topic_partitions))

    @_alone
    def poll(self, timeout_ms: int) -> list[ConsumerRecord]:
        self._call_back()
        return self._user.run(self._client.poll(timeout_ms))

    @_alone
    def fetch_batches(self, timeout_ms: int) -> dict[TopicPartition, FetchedBytes]:
        self._call_back()
        return self._user.run(self._client.fetch_batches(timeout_ms))

    @_alone
    def beginning_offsets(
        self, topic_partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, int]:
        return self._thread.run(self._client.beginning_offsets(topic_partitions))

    @_alone
    def end_offsets(self, topic_partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return self._thread.run(self._client.end_offsets(topic_partitions))

    @_alone
    def offsets_for_times(
        self, timestamps: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        return self._thread.run(self._client.offsets_for_times(timestamps))

    @_alone
    def partitions_for(self, topic: str) -> list[int]:
        return self._thread.run(self._client.partitions_for(topic))

    @_alone
    def list_topics(self, topics: Iterable[str] | None = None) -> dict[str, list[int]]:
        return self._thread.run(self._client.list_topics(topics))

    @_alone
    def topic_ids(self, topics: Iterable[str]) -> dict[str, bytes]:
        return self._thread.run(self._client.topic_ids(topics))
