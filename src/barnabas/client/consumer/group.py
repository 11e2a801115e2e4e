"""Performs a consumer's part in the rebalances of its group, and applies the assignments.

    poll: still a member, nothing changed?  -> read on
          else: commit, call the listener, revoke everything -> join -> take the assignment

    cooperative-sticky: join while reading on -> take the assignment: revoke what moves to
          another member, add what is new; join again if something was revoked (KIP-429)

All of this happens inside `poll`, so the assignment never changes between polls. Only a join
continues in the background. The module also watches the metadata for topics that match a pattern.
In the leader of the group, it also watches for changes in the number of partitions (AS-1).
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Callable, Sequence

from barnabas.client.cluster import Cluster
from barnabas.client.config import ConsumerConfig
from barnabas.client.consumer.assignment import Assignment, changes
from barnabas.client.consumer.commits import Commits
from barnabas.client.consumer.committed import GroupMetadata
from barnabas.client.consumer.membership import MEMBERSHIP_OVER, Membership
from barnabas.client.consumer.subscription import ListenerResult, RebalanceListener, Subscription
from barnabas.client.coordinator import CoordinatorFinder
from barnabas.client.errors import CommitFailed
from barnabas.counted import counted
from barnabas.errors import (
    BarnabasError,
    KafkaError,
    RebalanceInProgress,
    UnknownTopicOrPartition,
)
from barnabas.protocol.api import METADATA
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataResponse
from barnabas.shielded import shielded
from barnabas.types import TopicPartition

_log = logging.getLogger(__name__)


class Group:
    """Carries out the rebalances of a consumer: revoke, join, assign."""

    def __init__(
        self,
        cluster: Cluster,
        config: ConsumerConfig,
        coordinators: CoordinatorFinder,
        assignment: Assignment,
        commits: Commits,
        on_news: Callable[[], None],
    ) -> None:
        self._cluster = cluster
        self._group_id = config.group_id
        self._reset = config.auto_offset_reset
        self._assignment = assignment
        self._commits = commits
        self._on_news = on_news
        self._membership = Membership(cluster, config, coordinators, on_news)
        self._read_as = self._membership.metadata
        self._subscription: Subscription | None = None
        self._joined_for: tuple[str, ...] = ()
        # whether to create missing topics (only in a subscription's first join)
        self._may_create = False
        self._joining: asyncio.Task[list[TopicPartition]] | None = None
        self._looking: asyncio.Task[None] | None = None
        # a cooperative assignment still to be applied
        self._moving_to: list[TopicPartition] | None = None
        self.is_revoking = False  # committing before a revocation; no records are returned
        self._clock = cluster.seams.clock
        cluster.metadata.add_listener(self._on_metadata)
        commits.on_refused = self._on_commit_refused

    # ---- what to read ----

    @property
    def is_subscribed(self) -> bool:
        return self._subscription is not None

    def subscribe(self, subscription: Subscription) -> None:
        """Subscribe as of the next poll, which revokes the previous subscription's partitions."""
        self._subscription = subscription
        self._may_create = subscription.pattern is None
        self._commits.who = self._who

    def names(self) -> tuple[str, ...]:
        return self._subscription.names if self._subscription is not None else ()

    def metadata(self) -> GroupMetadata:
        """Return the member id and the generation of the last assignment.

        They are kept after the membership ends. Once the group has removed this member and
        reassigned its partitions, a transaction with records of these partitions must be rejected.
        A commit without a generation would be accepted (KIP-447).
        """
        return self._read_as

    def reads_alone(self) -> None:
        """Record that the partitions are assigned by hand."""
        self._read_as = self._membership.metadata

    async def leave(self, reason: str) -> None:
        """Revoke all partitions and leave the group."""
        if self._subscription is None:
            return
        for task in (self._joining, self._looking):
            if task is not None:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
        if self._joining is not None:
            self._membership.abandon_join()
        self._joining = self._looking = self._moving_to = None
        try:
            await self._give_up()
        finally:
            await self._membership.leave(reason)
            self._subscription = None
            self._joined_for = ()
            self._commits.who = lambda: GroupMetadata(self._group_id)

    # ---- polling ----

    async def poll(self, deadline_ms: int) -> bool:
        """Join the group if needed, and wait for an assignment. Returns False if time runs out.

        Raises any error that keeps this consumer out of its group, such as FencedInstanceId, and
        any exception from the listener.
        """
        membership = self._membership
        # Each iteration takes one step, depending on the state: give up, exchange or join.
        while True:
            if membership.is_fenced:
                # Another consumer has taken this instance id and the partitions (KIP-345).
                await self._give_up()
                membership.check_fenced()
            if membership.error is not None:
                if not await self._give_up(until_ms=deadline_ms):
                    return False
                error, membership.error = membership.error, None
                raise error
            if self._moving_to is not None:
                if not await self._exchange(self._moving_to, deadline_ms):
                    return False
                continue
            if self._joining is None:
                if not self._must_join():
                    self.is_revoking = False
                    return True
                if not await self._give_up_before_join(deadline_ms):
                    return False
                self._joining = asyncio.get_running_loop().create_task(self._join())
                self._joining.add_done_callback(lambda done: self._on_news())
            joining = self._joining
            # A cooperative member that keeps partitions returns their records while it joins.
            reads_on = len(self._assignment) > 0
            if not reads_on:
                await self._wait(joining, deadline_ms)
            if not joining.done():
                return reads_on
            self._joining = None
            await self._finish_join(joining)

    async def _finish_join(self, joining: asyncio.Task[list[TopicPartition]]) -> None:
        """Apply the result of a completed join."""
        try:
            assigned = joining.result()
        except MEMBERSHIP_OVER as error:
            # Only a member that kept its partitions reaches this point. Other members now read
            # these partitions, so tell the listener that they are lost; the next iteration joins as
            # a new member.
            _log.warning("group %r: partitions were lost: %s", self._group_id, error)
            await self._give_up()
            return
        except BarnabasError:
            await self._give_up()
            raise
        if self._membership.is_cooperative and self._membership.is_member:
            self._begin_exchange(assigned)
        # If the group or the subscription has changed in the meantime, the next iteration rejoins.
        elif not self._must_join():
            await self._take(assigned)

    async def _wait(self, joining: asyncio.Task[list[TopicPartition]], deadline_ms: int) -> None:
        """Wait until the join is complete or the time is up.

        An incomplete join continues in the background.
        """
        over = asyncio.gather(joining, return_exceptions=True)
        try:
            async with asyncio.timeout(max(deadline_ms - self._clock.monotonic_ms(), 0) / 1000):
                await shielded(over)
        except TimeoutError:
            return  # the join may also be complete

    def poll_began(self) -> None:
        self._membership.poll_began()

    def poll_ended(self) -> None:
        self._membership.poll_ended()

    def _must_join(self) -> bool:
        assert self._subscription is not None
        return (
            not self._membership.is_member
            or bool(self._membership.rejoin_reason)
            or self._joined_for != self._subscription.names
        )

    async def _join(self) -> list[TopicPartition]:
        subscription = self._subscription
        assert subscription is not None
        if subscription.pattern is not None:
            timeout_ms = self._cluster.config.default_api_timeout_ms
            await self._cluster.persist(lambda: self._look(subscription), timeout_ms)
        self._joined_for = subscription.names
        # Only the first join may create topics, because a topic deleted later must remain deleted.
        create, self._may_create = self._may_create, False
        self._cluster.metadata.hold(subscription.names, create=create)
        owned = self._assignment.names()
        return await self._membership.join(subscription.names, self._count_partitions, owned)

    async def _give_up_before_join(self, until_ms: int) -> bool:
        """Give up all partitions or, if cooperative, those of topics outside the subscription."""
        subscription = self._subscription
        assert subscription is not None
        kept: list[TopicPartition] = []
        if self._membership.is_cooperative and self._membership.is_member:
            kept = [name for name in self._assignment.names() if subscription.covers(name.topic)]
        return await self._give_up(kept, until_ms)

    async def _give_up(
        self, kept: Sequence[TopicPartition] = (), until_ms: int | None = None
    ) -> bool:
        """Give up all partitions except `kept`.

        Returns False if time is up before the commit is done; the caller tries again.
        """
        remaining = frozenset(kept)
        gone = [name for name in self._assignment.names() if name not in remaining]
        if not gone:
            return True
        if self._membership.is_member:
            self.is_revoking = True
            if not await self._commits.settle(until_ms):
                return False
        self.is_revoking = False
        listener = self._listener()
        try:
            if self._membership.is_member:
                await self._call(listener.on_partitions_revoked, gone)
            else:
                await self._call(listener.on_partitions_lost, gone)
        finally:
            # Whether or not the listener raises, the partitions no longer belong to this member.
            self._assignment.replace(kept)
        return True

    async def _take(self, assigned: Sequence[TopicPartition]) -> None:
        """Read the partitions of an eager assignment. All others were revoked before the join."""
        self._read_as = self._membership.metadata
        self._assignment.replace(assigned)
        self._cluster.metadata.track(name.topic for name in assigned)
        await self._call(self._listener().on_partitions_assigned, list(assigned))

    def _begin_exchange(self, assigned: list[TopicPartition]) -> None:
        self._read_as = self._membership.metadata
        self._moving_to = assigned
        # Revoked partitions are reassigned by another rebalance (KIP-429).
        moved = len(frozenset(self._assignment.names()) - frozenset(assigned))
        if moved:
            self._membership.ask_rejoin(f"revoked {counted(moved, 'partition')}")

    async def _exchange(self, assigned: Sequence[TopicPartition], until_ms: int) -> bool:
        """Revoke the partitions that this member has lost, and add those it has gained (KIP-429).

        The new owner receives a revoked partition only after this member has rejoined without the
        partition. Returns False if the time runs out before the commit is done. The caller tries
        again later.
        """
        kept, new = changes(self._assignment.names(), assigned)
        if not await self._give_up(kept, until_ms):
            return False
        self._moving_to = None
        self._assignment.replace([*kept, *new])
        self._cluster.metadata.track(name.topic for name in assigned)
        await self._call(self._listener().on_partitions_assigned, new)
        return True

    async def _call(
        self, method: Callable[[list[TopicPartition]], ListenerResult], names: list[TopicPartition]
    ) -> None:
        """Call the listener, for max.poll.interval.ms at most, the longest time between polls.

        As in the Java client, a member leaves the group if its listener hangs.
        """
        is_polling = self._membership.is_polling
        self.poll_ended()
        try:
            answer = method(names)
            if inspect.isawaitable(answer):
                await answer
        finally:
            if is_polling:
                self.poll_began()

    def _listener(self) -> RebalanceListener:
        assert self._subscription is not None
        return self._subscription.listener

    # ---- committing ----

    def _who(self) -> GroupMetadata:
        self._membership.check_fenced()
        if self._joining is not None and len(self._assignment):
            # a cooperative member can commit kept partitions during a join
            return self._read_as
        if self._joining is not None:
            raise RebalanceInProgress(
                f"group {self._group_id!r} is rebalancing: poll until that is over"
            )
        if not self._membership.is_member:
            raise CommitFailed(
                f"this consumer is not a member of group {self._group_id!r} now: it has not "
                "polled yet, or not in time (max.poll.interval.ms), or the group removed it"
            )
        return self._membership.metadata

    def _on_commit_refused(self, who: GroupMetadata, error: KafkaError) -> None:
        """Handle a rejected commit.

        If a rebalance has started in the meantime, raise RebalanceInProgress. Otherwise, rejoin the
        group or end the membership.
        """
        membership = self._membership
        is_overtaken = membership.is_member and who != membership.metadata
        if self._joining is not None or is_overtaken:
            raise RebalanceInProgress(
                f"group {self._group_id!r} is rebalancing: poll until that is over, then commit"
            ) from error
        if isinstance(error, RebalanceInProgress):
            self._membership.ask_rejoin("the group is rebalancing")
        else:
            self._membership.lose(error)

    # ---- watching the topics ----

    async def _count_partitions(self, topics: Sequence[str]) -> dict[str, int]:
        # The leader looks up the topics of all members, which may subscribe to different topics.
        self._cluster.metadata.hold([*self.names(), *topics])
        view = await self._cluster.metadata.refresh()
        return {name: len(view.topics[name].partitions) for name in topics if name in view.topics}

    def _on_metadata(self) -> None:
        subscription = self._subscription
        if subscription is None:
            return
        if subscription.pattern is not None and self._looking is None and self._joining is None:
            looking = self._look_again(subscription)
            self._looking = self._cluster.tasks.start("looking for topics", looking)
        view = self._cluster.metadata.view
        for topic, count in (self._membership.counts or {}).items():
            known = view.topics.get(topic)
            # A topic that is missing from the metadata may only be without a leader for a moment,
            # which does not count as a change.
            if known is not None:
                now = len(known.partitions)
            else:
                is_gone = view.errors.get(topic) == UnknownTopicOrPartition.code
                now = 0 if is_gone else count
            if not now and count and not self._membership.rejoin_reason:
                _log.warning(
                    "topic %r was deleted; if it is created again, reading starts at the %s offset",
                    topic,
                    self._reset,
                )
            if now != count:
                self._membership.ask_rejoin(
                    f"topic {topic!r} has {counted(now, 'partition')}, not {count}"
                )

    async def _look(self, subscription: Subscription) -> None:
        """Look up which topics match the pattern now."""
        # Request all topics, because in the classic protocol the client applies the pattern, not
        # the broker.
        request = MetadataRequest(topics=None, allow_auto_topic_creation=False)
        response = await self._cluster.call_any(METADATA, request, MetadataResponse)
        known = {
            topic.name or "": topic.is_internal for topic in response.topics if not topic.error_code
        }
        if subscription.match(known):
            _log.info(
                "group %r: the pattern now matches %s",
                self._group_id,
                counted(len(subscription.names), "topic"),
            )
            self._on_news()

    async def _look_again(self, subscription: Subscription) -> None:
        try:
            await self._look(subscription)
        except BarnabasError as error:
            _log.info("looking for topics: %s", error)  # the next refresh retries
        finally:
            self._looking = None
