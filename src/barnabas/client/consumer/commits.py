"""Commits a consumer's offsets, on demand and automatically during polls (CO-4).

Commits reach the coordinator one at a time and in the order of the calls, so an older position
never overwrites a newer one.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from typing import Any

from barnabas.client.cluster import Cluster
from barnabas.client.config import ConsumerConfig
from barnabas.client.consumer.assignment import Assignment
from barnabas.client.consumer.committed import (
    GroupMetadata,
    OffsetAndMetadata,
    as_offsets,
    commit_offsets,
    fetch_committed,
    topic_ids,
    unknown_partitions,
)
from barnabas.client.coordinator import CoordinatorFinder
from barnabas.client.errors import CommitFailed, Unreachable, reason
from barnabas.client.retry_log import RetryLog
from barnabas.counted import counted
from barnabas.errors import (
    BarnabasError,
    FencedInstanceId,
    IllegalGeneration,
    KafkaError,
    RebalanceInProgress,
    UnknownMemberId,
    UnknownTopicOrPartition,
)
from barnabas.shielded import shielded
from barnabas.types import TopicPartition

_log = logging.getLogger(__name__)

_LOOK_UP_AGAIN_MS = 1_000
"""How long the ids of topics remain known, so that frequent commits cost no further requests."""

Offsets = Mapping[TopicPartition, OffsetAndMetadata | int]
WhenCommitted = Callable[[dict[TopicPartition, OffsetAndMetadata], BarnabasError | None], None]
"""A commit callback. It is called with the offsets, and with the error if the commit failed."""


def positions(assignment: Assignment) -> dict[TopicPartition, OffsetAndMetadata]:
    """Return the position of each partition, with the leader epoch of the record before it."""
    return {
        state.topic_partition: OffsetAndMetadata(state.position, leader_epoch=state.epoch)
        for state in assignment
        if state.position >= 0
    }


class Commits:
    """Commits the offsets of a consumer, and tracks which offsets are stored."""

    def __init__(
        self,
        cluster: Cluster,
        config: ConsumerConfig,
        coordinators: CoordinatorFinder,
        assignment: Assignment,
    ) -> None:
        self._cluster = cluster
        self._config = config
        self._coordinators = coordinators
        self._assignment = assignment
        self._clock = cluster.seams.clock
        self._commits_itself = config.enable_auto_commit
        # holds background commits in the order in which they were requested
        self._line = asyncio.Lock()
        self._running: dict[asyncio.Task[None], None] = {}
        self._settling: asyncio.Task[None] | None = None
        self._refusals = RetryLog()
        # offsets stored by auto commit
        self._committed: dict[TopicPartition, int] = {}
        self._due_ms = self._clock.monotonic_ms() + config.auto_commit_interval_ms
        # the ids of topics, and when they are looked up again
        self._looked_up: dict[str, bytes] = {}
        self._look_up_at_ms = 0
        self.who: Callable[[], GroupMetadata] = lambda: GroupMetadata(config.group_id)
        """Returns the group's metadata.

        Raises CommitFailed or RebalanceInProgress if the member cannot commit.
        """
        self.on_refused: Callable[[GroupMetadata, KafkaError], None] = lambda who, error: None
        """Called if the coordinator rejected the generation of the member.

        It may raise a more specific error.
        """
        self.on_committed: Callable[[Mapping[TopicPartition, OffsetAndMetadata]], None] | None = (
            None
        )
        self.follow_topics: Callable[[], None] = lambda: None
        """Drops the positions in topics that have been deleted and recreated."""

    # ---- reading ----

    async def fetch(
        self, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return the offsets that the group has committed. Partitions without one are omitted."""
        names = [TopicPartition(*name) for name in partitions]
        if not names:
            return {}
        # An open transaction may still change an offset, so a read_committed consumer waits until
        # it ends (KIP-447).
        stable = self._config.isolation_level == "read_committed"
        return await self._cluster.persist(
            lambda: fetch_committed(
                self._coordinators, self._config.group_id, names, require_stable=stable
            ),
            self._cluster.config.default_api_timeout_ms,
        )

    # ---- on demand ----

    async def commit(self, offsets: Offsets | None, timeout_ms: int | None = None) -> None:
        """Commit these offsets, or the positions if None is given.

        Retries transient errors and raises all other errors.
        """
        wanted = self._positions() if offsets is None else as_offsets(offsets)
        if timeout_ms is None:
            timeout_ms = self._cluster.config.default_api_timeout_ms
        # Background commits requested earlier must reach the coordinator first.
        await self._idle()
        if self._settling is not None:
            await shielded(asyncio.gather(self._settling, return_exceptions=True))
        unknown = await self._cluster.persist(lambda: self._attempt(wanted), timeout_ms)
        if unknown:
            raise unknown_partitions(self._config.group_id, unknown)

    def commit_later(self, offsets: Offsets | None, when_done: WhenCommitted | None) -> None:
        """Commit in the background with one attempt. `when_done` is called on the event loop."""
        wanted = self._positions() if offsets is None else as_offsets(offsets)

        async def commit() -> None:
            unknown, error = await self._outcome(wanted)
            if unknown:
                error = unknown_partitions(self._config.group_id, unknown)
            if when_done is not None:
                self._call_back(when_done, wanted, error)
            elif error is not None:
                _log.warning("a commit of %s failed: %s", counted(len(wanted), "offset"), error)

        self._spawn(commit())

    def _call_back(
        self,
        when_done: WhenCommitted,
        offsets: dict[TopicPartition, OffsetAndMetadata],
        error: BarnabasError | None,
    ) -> None:
        """Call the user's callback. If it raises an exception, the exception is only logged."""
        try:
            when_done(offsets, error)
        except Exception:
            _log.exception("the callback of a commit of %s failed", counted(len(offsets), "offset"))

    async def _outcome(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata]
    ) -> tuple[list[TopicPartition], BarnabasError | None]:
        """Attempt a commit when its turn comes, and return the unknown partitions and any error."""
        try:
            async with self._line:
                return await self._attempt(offsets), None
        except BarnabasError as failure:
            return [], failure
        except Exception as failure:  # a bug in Barnabas; also reported to the callback
            self._cluster.tasks.fail("a commit", failure)
            return [], self._cluster.tasks.error

    async def _attempt(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata]
    ) -> list[TopicPartition]:
        """Attempt a commit, and return the partitions omitted because they do not exist, or because
        their topics were deleted and recreated."""
        if not offsets:
            return []
        who = self.who()
        outdated = await self._outdated(offsets)
        if outdated:
            # The next poll starts in the new topic.
            self._cluster.metadata.request_refresh()
            offsets = {name: at for name, at in offsets.items() if name not in outdated}
        try:
            unknown = outdated
            if offsets:
                unknown = outdated + await commit_offsets(self._coordinators, who, offsets)
        except (UnknownMemberId, IllegalGeneration) as error:
            self.on_refused(who, error)
            raise CommitFailed(
                f"{error} The partitions may have been given to another member, since poll was "
                "not called in time: raise max.poll.interval.ms or lower max.poll.records"
            ) from error
        except (RebalanceInProgress, FencedInstanceId) as error:
            self.on_refused(who, error)
            raise
        missing = frozenset(unknown)
        committed = {name: at for name, at in offsets.items() if name not in missing}
        if self.on_committed is not None and committed:
            self.on_committed(committed)
        return unknown

    async def _outdated(self, names: Iterable[TopicPartition]) -> list[TopicPartition]:
        """Return the partitions whose positions refer to a topic that has been recreated.

        The view may be older than the new topic, so the coordinator is asked, unless it was asked a
        moment ago.
        """
        states = {each.topic_partition: each.topic_id for each in self._assignment}
        read = {name: states[name] for name in names if states.get(name)}
        now_ms = self._clock.monotonic_ms()
        topics = {name.topic for name in read}
        if topics and not (topics <= self._looked_up.keys() and now_ms < self._look_up_at_ms):
            group_id = self._config.group_id
            self._looked_up = await topic_ids(self._coordinators, group_id, topics)
            self._look_up_at_ms = now_ms + _LOOK_UP_AGAIN_MS
        # The coordinator refuses the partitions of a topic that is missing.
        return [
            name for name, known in read.items() if self._looked_up.get(name.topic, known) != known
        ]

    # ---- automatic ----

    def auto_commit(self) -> None:
        """Commit if a commit is due.

        At the start of a poll, the records of earlier polls count as processed.
        """
        now_ms = self._clock.monotonic_ms()
        if not self._commits_itself or now_ms < self._due_ms:
            return
        self._due_ms = now_ms + self._config.auto_commit_interval_ms
        wanted = self._uncommitted_positions()
        if not wanted:
            return

        async def commit() -> None:
            unknown, error = await self._outcome(wanted)
            if error is None:
                self._on_accepted(wanted, unknown)
                return
            _log.warning("auto commit of %s failed: %s", counted(len(wanted), "offset"), error)
            # A transient error is retried soon rather than after auto.commit.interval.ms.
            if isinstance(error, Unreachable | RebalanceInProgress) or (
                isinstance(error, KafkaError) and error.retriable
            ):
                self._due_ms = self._clock.monotonic_ms() + self._cluster.config.retry_backoff_ms

        self._spawn(commit())

    def stop_auto_commit(self) -> None:
        """Stop auto commit."""
        self._commits_itself = False

    async def settle(self, deadline_ms: int | None = None) -> bool:
        """Before a revocation, wait for pending commits and auto commit the remaining positions.

        Returns False at the deadline. The next call resumes waiting.
        """
        # Use a separate task, because a poll that runs out of time must return without cancelling
        # the commit.
        if self._settling is None:
            self._settling = self._cluster.tasks.start("the last commit", self._settle())
        settling = self._settling
        wait_ms = None if deadline_ms is None else deadline_ms - self._clock.monotonic_ms()
        try:
            async with asyncio.timeout(None if wait_ms is None else max(wait_ms, 0) / 1000):
                await shielded(settling)
        except TimeoutError:
            if not settling.done():
                return False
        self._settling = None
        return True

    async def _settle(self) -> None:
        await self._idle()
        # This is the last chance, because revoked partitions are no longer followed.
        self.follow_topics()
        self._looked_up = {}
        wanted = self._uncommitted_positions() if self._commits_itself else {}
        if wanted:
            timeout_ms = self._cluster.config.request_timeout_ms
            try:
                async with self._line:  # an earlier commit must not overwrite a later one
                    unknown = await self._cluster.persist(lambda: self._attempt(wanted), timeout_ms)
                self._on_accepted(wanted, unknown)
            except BarnabasError as error:
                _log.warning("auto commit of %s failed: %s", counted(len(wanted), "offset"), error)
        # Other members may commit offsets for these partitions before they return to this member.
        self._committed.clear()

    def _on_accepted(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
        unknown: Sequence[TopicPartition],
    ) -> None:
        """Record the offsets that an auto commit has stored, and log any unknown partitions."""
        refused = frozenset(unknown)
        self._note({name: at for name, at in offsets.items() if name not in refused})
        now_ms = self._clock.monotonic_ms()
        for topic in dict.fromkeys(name.topic for name in unknown):
            if self._refusals.is_news(topic, UnknownTopicOrPartition, now_ms):
                why = reason(UnknownTopicOrPartition)
                _log.warning(
                    "auto commit skipped topic %r and committed all others: %s", topic, why
                )

    def _uncommitted_positions(self) -> dict[TopicPartition, OffsetAndMetadata]:
        return {
            name: each
            for name, each in self._positions().items()
            if self._committed.get(name) != each.offset
        }

    def _positions(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return the positions, except in topics that are known to be deleted.

        Commits identify topics by name, not by id. If a new topic has the same name, a commit would
        make the whole group skip all records of that topic before the offset.
        """
        self.follow_topics()
        return positions(self._assignment)

    def forget(self, name: TopicPartition) -> None:
        """Forget the committed offset of a partition whose topic was replaced by another topic."""
        self._committed.pop(name, None)

    def start_at(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """Record that these offsets were read from the group and need not be committed."""
        self._note(offsets)

    def _note(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        for name, each in offsets.items():
            self._committed[name] = each.offset

    async def _idle(self) -> None:
        """Wait until no background commit is pending."""
        # A commit that has finished is removed from the list one turn of the loop later. Awaiting
        # the commit would not let the loop run that turn.
        while under_way := [task for task in self._running if not task.done()]:
            await shielded(asyncio.gather(*under_way, return_exceptions=True))

    async def close(self) -> None:
        for task in list(self._running):
            task.cancel()
        if self._settling is not None:
            self._settling.cancel()
            await asyncio.gather(self._settling, return_exceptions=True)
        await asyncio.gather(*self._running, return_exceptions=True)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._cluster.tasks.start("a commit", work)
        self._running[task] = None
        task.add_done_callback(lambda done: self._running.pop(done))
