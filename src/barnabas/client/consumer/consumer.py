"""Provides the consumer, which reads partitions chosen with `assign` or by a group (`subscribe`).

    async with Consumer("localhost:9092", group_id="readers") as consumer:
        consumer.subscribe(["test"])
        records = await consumer.poll(1_000)

Each record of a partition is returned once and in order. The first position is the group's
committed offset, or the offset that `auto.offset.reset` selects if there is no committed offset.
Only one task may use the consumer at a time.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Unpack

from barnabas.client import arguments
from barnabas.client.channel import Seams, system_seams
from barnabas.client.cluster import Cluster
from barnabas.client.config import (
    ConsumerConfig,
    ConsumerOptions,
    Servers,
    configure,
    split,
)
from barnabas.client.consumer.assignment import Assignment
from barnabas.client.consumer.fetcher import Fetcher
from barnabas.client.consumer.polls import Polls
from barnabas.client.consumer.positions import COMMITTED, Positions
from barnabas.client.consumer.reading import Deserialize, deserialization
from barnabas.client.offsets import READ_COMMITTED, READ_UNCOMMITTED, OffsetFinder
from barnabas.counted import counted
from barnabas.errors import InvalidGroupId
from barnabas.shielded import shielded
from barnabas.types import TopicPartition

if TYPE_CHECKING:
    from barnabas.client.consumer.commits import Commits, Offsets, WhenCommitted
    from barnabas.client.consumer.committed import GroupMetadata, OffsetAndMetadata
    from barnabas.client.consumer.group import Group
    from barnabas.client.consumer.subscription import RebalanceListener
    from barnabas.client.interceptors import Interceptors


class Consumer(Polls):
    """Reads partitions within one event loop. Only one task may use it at a time.

    Args:
        bootstrap_servers: "host:port,..." or a list of such strings; or a mapping of options that
            includes `bootstrap.servers`.
        options: Kafka's options, with underscores or dots (see `ConsumerOptions`).

    Raises:
        ConfigError: an option is unknown or has an invalid value; the error names the option.

    Methods that take partitions accept one partition, several partitions or a list. Each may be a
    TopicPartition or a plain pair of topic and number.
    """

    def __init__(
        self,
        bootstrap_servers: Servers = None,
        *,
        seams: Seams | None = None,
        **options: Unpack[ConsumerOptions],
    ) -> None:
        super().__init__()
        servers, given = split(bootstrap_servers, options)
        common, self._config = configure(ConsumerConfig, given)
        self._cluster = Cluster(servers, common, seams or system_seams())
        self._cluster.metadata.creates_topics = self._config.allow_auto_create_topics
        self._clock = self._cluster.seams.clock
        self._api_timeout_ms = common.default_api_timeout_ms
        # Start at the group's offset; the rule applies to partitions without one (CO-5).
        self._assignment = Assignment(
            COMMITTED if self._config.group_id else self._config.auto_offset_reset
        )
        self._fetcher = Fetcher(self._cluster, self._config, self._assignment)
        committed = self._config.isolation_level == "read_committed"
        self._offsets = OffsetFinder(
            self._cluster, READ_COMMITTED if committed else READ_UNCOMMITTED
        )
        self._positions = Positions(
            self._cluster, self._offsets, self._fetcher, self._config.auto_offset_reset
        )
        self._deserialize = self._chosen_deserializers()
        self._interceptors = self._chosen_interceptors()
        self._cluster.tasks.add_failure_listener(lambda error: self._wake())
        self._commits: Commits | None = None
        self._group: Group | None = None
        if self._config.group_id:
            self._make_group()

    def __repr__(self) -> str:
        group = f", group {self._config.group_id!r}" if self._config.group_id else ""
        state = ", closed" if self._is_closed else ""
        topics = self.subscription()
        names = f"subscribed to {', '.join(topics)}" if topics else "no subscription"
        client = self._cluster.config.client_id
        assigned = counted(len(self._assignment), "partition")
        return f"<Consumer {client!r}{group}: {names}, {assigned}{state}>"

    def _chosen_deserializers(self) -> Deserialize | None:
        key, value = self._config.key_deserializer, self._config.value_deserializer
        if key is None and value is None:
            return None
        from barnabas.client.serialization import deserializer  # imported only if used

        return deserialization(
            None if key is None else deserializer(key, "key.deserializer"),
            None if value is None else deserializer(value, "value.deserializer"),
        )

    def _chosen_interceptors(self) -> Interceptors | None:
        if self._config.interceptor_classes is None:
            return None
        from barnabas.client.interceptors import CONSUMER_METHODS, interceptor_classes

        return interceptor_classes(self._config.interceptor_classes, CONSUMER_METHODS)

    def _make_group(self) -> None:
        # This is not imported at the top, because consumers without a group, such as Spark's, do
        # not need it.
        from barnabas.client.consumer.commits import Commits
        from barnabas.client.consumer.group import Group
        from barnabas.client.coordinator import GROUP, CoordinatorFinder

        coordinators = CoordinatorFinder(self._cluster, GROUP)
        self._commits = Commits(self._cluster, self._config, coordinators, self._assignment)
        self._group = Group(
            self._cluster, self._config, coordinators, self._assignment, self._commits, self._wake
        )
        self._positions.commits = self._commits
        self._commits.follow_topics = self._fetcher.follow_leaders
        self._fetcher.on_new_topic = self._commits.forget
        if self._interceptors is not None:
            self._commits.on_committed = self._interceptors.on_commit

    # ---- lifecycle ----

    async def start(self) -> None:
        """Connect. With `async with`, this is done automatically.

        Raises:
            NoBrokersAvailable: none of `bootstrap.servers` answered; each was asked once.
            ClientClosed: after `close`.
        """
        self._check_open()
        await self._cluster.start()
        self._has_started = True

    async def close(self, *, autocommit: bool = True) -> None:
        """Commit (with `enable.auto.commit`, unless `autocommit` is false), leave and disconnect.

        A static member does not leave its group, because it may return within `session.timeout.ms`.
        The consumer waits for a response to leaving for one second at most. Other tasks that
        iterate over the consumer stop, and a poll in another task raises ClientClosed. Closing a
        closed consumer does nothing.
        """
        if not arguments.flag(autocommit, "autocommit"):
            self.stop_auto_commit()
        if self._has_ended:
            return
        self._cluster.metadata.check_loop()
        self._has_ended = self._is_closed = True
        await self.interrupt()
        # Commit and leave while all connections are open. Then end the tasks in order, from the
        # user's side towards the network, because no task may outlive what it uses.
        try:
            with self._cluster.tasks.slow(
                f"close is waiting for the coordinator of group {self._config.group_id!r}: at "
                "most request.timeout.ms to commit, then a second to leave"
            ):
                await self._let_go("the consumer was closed")
        finally:
            await self._positions.close()
            if self._commits is not None:
                await self._commits.close()
            await self._fetcher.close()
            await self._cluster.close()
            if self._interceptors is not None:
                self._interceptors.close()

    stop = close  # name used by other clients

    async def interrupt(self) -> None:
        """Before `close`, end another task's poll with ClientClosed, and reject further polls."""
        self._credit = 0
        self._is_closed = True
        if self._poller is None or self._poller is asyncio.current_task():
            return
        assert self._poll_over is not None
        self._poller.cancel()
        await shielded(self._poll_over)

    def stop_auto_commit(self) -> None:
        """Stop auto commit, because some of the records read may not have been processed."""
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
        """Close. After an exception, do not auto commit, because records may be unprocessed."""
        await self.close(autocommit=kind is None)

    # ---- what to read ----

    def subscribe(
        self,
        topics: Iterable[str] | re.Pattern[str],
        listener: RebalanceListener | None = None,
    ) -> None:
        """Join the group at the next `poll`, and share these topics with its other members.

        Replaces the previous subscription.

        Args:
            topics: names, or a compiled pattern that must match a whole name; topics created later
                are found within `metadata.max.age.ms`.
            listener: called during `poll`, `unsubscribe` and `close` with the partitions gained or
            lost.

        Raises:
            InvalidGroupId: there is no `group.id`.
            ValueError: there are no topics, or partitions are assigned by hand.
            InvalidTopicName: a name is not a valid topic name.
            TypeError: `topics` is neither names nor a pattern.
        """
        from barnabas.client.consumer.subscription import Subscription, checked_listener

        self._check_open()
        group = self._required_group()
        checked_listener(listener)
        if len(self._assignment) and not group.is_subscribed:
            raise ValueError("partitions are assigned by hand; call unsubscribe() first")
        self._has_source = True
        exclude = self._config.exclude_internal_topics
        group.subscribe(Subscription(topics, listener, exclude_internal=exclude))

    async def unsubscribe(self) -> None:
        """Leave the group, as `close` does, and drop all partitions, however they were assigned."""
        await self._let_go("the consumer unsubscribed")
        self._assignment.replace([])
        self._cluster.metadata.hold([])

    def subscription(self) -> list[str]:
        """Return the subscribed topics. For a pattern, these are the known topics that match it."""
        return list(self._group.names()) if self._group is not None else []

    def assign(self, topic_partitions: arguments.Partitions) -> None:
        """Read these partitions from now on. Those that were already assigned keep their positions.

        Other consumers do not affect this assignment, because the `group.id` only determines where
        committed offsets are read and stored. A partition that cannot be read yet (its topic does
        not exist, or it has no leader) does not delay other partitions; the consumer logs a warning
        and keeps looking for it.

        Raises:
            ValueError: after `subscribe`.
        """
        self._check_open()
        names = arguments.partitions([topic_partitions])
        if self._group is not None and self._group.is_subscribed:
            raise ValueError("this consumer is subscribed; call unsubscribe() first")
        if self._group is not None:
            self._group.reads_alone()
        self._has_source = True
        self._assignment.replace(names)
        self._cluster.metadata.hold([topic for topic, _ in names], create=True)

    def assignment(self) -> list[TopicPartition]:
        """Return the partitions assigned by hand or, as of the last poll, by the group."""
        return self._assignment.names()

    def seek(self, topic_partition: tuple[str, int], offset: int) -> None:
        """Continue reading a partition at this offset.

        Raises:
            ValueError: the offset is negative, or the partition is not assigned.
        """
        self._state(topic_partition).seek(arguments.whole_number(offset, "offset"))

    async def seek_to_beginning(self, *topic_partitions: arguments.Partitions) -> None:
        """Go to the first record of these partitions (or of all partitions, if none are given)."""
        await self._seek_by("earliest", topic_partitions)

    async def seek_to_end(self, *topic_partitions: arguments.Partitions) -> None:
        """Go to the end of these partitions (or of all partitions, if none are given)."""
        await self._seek_by("latest", topic_partitions)

    async def seek_to_committed(self, *topic_partitions: arguments.Partitions) -> None:
        """Go to the group's committed offsets, or follow `auto.offset.reset` where there is none.

        Raises:
            InvalidGroupId: there is no `group.id`.
        """
        self._required_group()
        await self._seek_by(COMMITTED, topic_partitions)

    async def _seek_by(
        self, reset: str, topic_partitions: tuple[arguments.Partitions, ...]
    ) -> None:
        states = self._states(topic_partitions) if topic_partitions else list(self._assignment)
        for state in states:
            state.seek_by(reset)
        await self._positions.find(states)

    async def position(self, topic_partition: tuple[str, int]) -> int:
        """Return the offset of the next record that `poll` will return from this partition.

        Raises:
            ValueError: the partition is not assigned.
            NoOffsetForPartition: it has no position, and `auto.offset.reset` is none.
        """
        state = self._state(topic_partition)
        if state.reset is not None:
            await self._positions.find([state])
        return state.position

    def positions(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return the position of each assigned partition, if known.

        Each position includes the leader epoch of the last record, as in `commit_sync()`. Pass the
        result to `send_offsets_to_transaction`. A consumer that starts at the offset uses the epoch
        to detect a deposed leader, and then waits for the new leader (KIP-320).
        """
        from barnabas.client.consumer.commits import (
            positions,  # imported only if needed, as in the constructor
        )

        return positions(self._assignment)

    async def lag(self, *topic_partitions: arguments.Partitions) -> dict[TopicPartition, int]:
        """Return the number of offsets between the position and the end that brokers report now.

        Args:
            topic_partitions: assigned partitions; if none are given, all that are assigned.
        """
        states = self._states(topic_partitions) if topic_partitions else list(self._assignment)
        names = [state.topic_partition for state in states]
        ends = await self.end_offsets(names)
        return {name: max(ends[name] - await self.position(name), 0) for name in names}

    def current_lag(self, topic_partition: tuple[str, int]) -> int | None:
        """Return the lag as of the last fetch, without a request; None before the first fetch."""
        state = self._state(topic_partition)
        committed = self._config.isolation_level == "read_committed"
        end = state.last_stable_offset if committed else state.high_watermark
        return None if end < 0 or state.position < 0 else max(end - state.position, 0)

    def highwater(self, topic_partition: tuple[str, int]) -> int | None:
        """Return the high watermark as of the last fetch, or None before the first fetch."""
        found = self._state(topic_partition).high_watermark
        return None if found < 0 else found

    def pause(self, *topic_partitions: arguments.Partitions) -> None:
        """Stop returning records of these partitions until `resume`. They stay assigned."""
        for state in self._states(topic_partitions):
            state.paused = True

    def resume(self, *topic_partitions: arguments.Partitions) -> None:
        """Return records of these partitions again."""
        for state in self._states(topic_partitions):
            state.paused = False

    def paused(self) -> set[TopicPartition]:
        """Return the assigned partitions that are paused."""
        return {state.topic_partition for state in self._assignment if state.paused}

    # ---- the group ----

    async def commit_sync(self, offsets: Offsets | None = None) -> None:
        """Commit offsets, and return once they are stored (CO-4).

        Args:
            offsets: for each partition, the offset of the next record to read, as an int or
                OffsetAndMetadata; None: the position in every assigned partition.

        Raises:
            CommitFailed: the group has given the partitions to other members.
            RebalanceInProgress: the group is about to do so; poll until the rebalance is over, then
                commit again.
            UnknownTopicOrPartition: a partition was deleted; all other offsets are committed.
            InvalidGroupId: there is no `group.id`.
            Unreachable, KafkaError: the commit failed or took longer than `default.api.timeout.ms`.
        """
        await self._required_commits().commit(offsets)

    commit = commit_sync  # name used by other clients

    def commit_async(
        self, offsets: Offsets | None = None, when_done: WhenCommitted | None = None
    ) -> None:
        """Commit in the background with a single attempt. Commits keep the order of the calls.

        `when_done(offsets, error)` is called on the event loop. Without a callback, errors are only
        logged.
        """
        if when_done is not None:
            arguments.callback(when_done, "when_done")
        self._required_commits().commit_later(offsets, when_done)

    async def committed(
        self, *topic_partitions: arguments.Partitions
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """Return the group's committed offset for each partition, or None if there is none.

        Args:
            topic_partitions: one partition, several or a list; they need not be assigned.

        Raises:
            InvalidGroupId: there is no `group.id`.
        """
        names = arguments.partitions(topic_partitions)
        found = await self._required_commits().fetch(names)
        return {name: found.get(name) for name in names}

    def group_metadata(self) -> GroupMetadata:
        """Return this consumer's group membership, to pass to `send_offsets_to_transaction`."""
        return self._required_group().metadata()

    async def _let_go(self, reason: str) -> None:
        if self._group is not None and self._group.is_subscribed:
            await self._group.leave(reason)
        # Offsets of partitions assigned by hand also belong to the group. Generation 0 means that
        # the client has never connected.
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
