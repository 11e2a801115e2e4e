"""The consumer, blocking: for one thread, in which its rebalance listener is called as well."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Unpack

from barnabas.client.blocking import BlockingClient
from barnabas.client.config import ConsumerOptions
from barnabas.client.consumer import Consumer
from barnabas.client.errors import ClientClosed
from barnabas.client.fetched import ConsumerRecord, FetchedBytes
from barnabas.client.offsets import OffsetAndTimestamp
from barnabas.client.subscription import RebalanceListener
from barnabas.client.user_thread import ListenerThere, UserThread
from barnabas.errors import BarnabasError
from barnabas.types import TopicPartition

if TYPE_CHECKING:
    from barnabas.client.commits import Offsets, WhenCommitted
    from barnabas.client.committed import GroupMetadata, OffsetAndMetadata


class SyncConsumer(BlockingClient[Consumer]):
    """A `Consumer` for one thread; the methods are its, blocking."""

    def __init__(
        self, bootstrap_servers: str | Sequence[str], **options: Unpack[ConsumerOptions]
    ) -> None:
        super().__init__(Consumer(bootstrap_servers, **options))
        self._user = UserThread(self._thread)
        self._finished: deque[Callable[[], None]] = deque()  # commits to tell the user of

    def close(self) -> None:
        """Commit (with `enable.auto.commit`), leave the group, disconnect."""
        try:
            self.unsubscribe()
        except ClientClosed:
            return
        finally:
            super().close()

    def subscribe(
        self, topics: Iterable[str] | re.Pattern[str], listener: RebalanceListener | None = None
    ) -> None:
        """As `Consumer.subscribe`; the listener's methods are plain ones, called in this thread."""
        there = None if listener is None else ListenerThere(listener, self._user)
        self._thread.call(lambda: self._client.subscribe(topics, there))

    def unsubscribe(self) -> None:
        self._user.run(self._client.unsubscribe())
        self._tell()

    def subscription(self) -> list[str]:
        return self._thread.call(self._client.subscription)

    def commit_sync(self, offsets: Offsets | None = None) -> None:
        """As `Consumer.commit_sync`."""
        self._thread.run(self._client.commit_sync(offsets))
        self._tell()

    def commit_async(
        self, offsets: Offsets | None = None, when_done: WhenCommitted | None = None
    ) -> None:
        """As `Consumer.commit_async`; the next poll or commit of this thread calls `when_done`."""
        told = None if when_done is None else partial(self._note, when_done)
        self._thread.call(lambda: self._client.commit_async(offsets, told))

    def committed(
        self, *topic_partitions: TopicPartition
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        return self._thread.run(self._client.committed(*topic_partitions))

    def group_metadata(self) -> GroupMetadata:
        return self._thread.call(self._client.group_metadata)

    def _note(
        self,
        when_done: WhenCommitted,
        offsets: dict[TopicPartition, OffsetAndMetadata],
        error: BarnabasError | None,
    ) -> None:
        self._finished.append(partial(when_done, offsets, error))

    def _tell(self) -> None:
        while self._finished:
            self._finished.popleft()()

    def assign(self, topic_partitions: Iterable[TopicPartition]) -> None:
        names = list(topic_partitions)
        self._thread.call(lambda: self._client.assign(names))

    def assignment(self) -> list[TopicPartition]:
        return self._thread.call(self._client.assignment)

    def seek(self, topic_partition: TopicPartition, offset: int) -> None:
        self._thread.call(lambda: self._client.seek(topic_partition, offset))

    def seek_to_beginning(self, *topic_partitions: TopicPartition) -> None:
        self._thread.run(self._client.seek_to_beginning(*topic_partitions))

    def seek_to_end(self, *topic_partitions: TopicPartition) -> None:
        self._thread.run(self._client.seek_to_end(*topic_partitions))

    def position(self, topic_partition: TopicPartition) -> int:
        return self._thread.run(self._client.position(topic_partition))

    def pause(self, *topic_partitions: TopicPartition) -> None:
        self._thread.call(lambda: self._client.pause(*topic_partitions))

    def resume(self, *topic_partitions: TopicPartition) -> None:
        self._thread.call(lambda: self._client.resume(*topic_partitions))

    def poll(self, timeout_ms: int) -> list[ConsumerRecord]:
        self._tell()
        return self._user.run(self._client.poll(timeout_ms))

    def fetch_batches(self, timeout_ms: int) -> dict[TopicPartition, FetchedBytes]:
        self._tell()
        return self._user.run(self._client.fetch_batches(timeout_ms))

    def beginning_offsets(
        self, topic_partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, int]:
        return self._thread.run(self._client.beginning_offsets(topic_partitions))

    def end_offsets(self, topic_partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return self._thread.run(self._client.end_offsets(topic_partitions))

    def offsets_for_times(
        self, timestamps: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        return self._thread.run(self._client.offsets_for_times(timestamps))

    def partitions_for(self, topic: str) -> list[int]:
        return self._thread.run(self._client.partitions_for(topic))

    def list_topics(self) -> dict[str, list[int]]:
        return self._thread.run(self._client.list_topics())
