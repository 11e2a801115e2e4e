"""Finds a consumer's starting positions, from the group's offsets or by a rule (CO-5).

The lookups for polls run concurrently. The coordinator is sent one request for all partitions that
start at the group's offsets, and each leader is sent one request for its other partitions. A
partition without a topic, a leader or a response does not delay the other partitions. Polls return
the records that are available, and the lookup is retried after the backoff or as soon as new
metadata arrives. A permanent error is raised by the next poll.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from barnabas.client.channel import BrokerAddress
from barnabas.client.cluster import Cluster
from barnabas.client.consumer.assignment import AssignedPartition
from barnabas.client.errors import NoOffsetForPartition, UnknownPartition, reason
from barnabas.client.offsets import EARLIEST, LATEST, OffsetFinder, is_passing
from barnabas.client.retry_log import MOMENT_MS, RetryLog
from barnabas.client.view import unknown_partition
from barnabas.errors import BarnabasError, LeaderNotAvailable, UnknownTopicOrPartition

if TYPE_CHECKING:
    from barnabas.client.consumer.commits import Commits
    from barnabas.client.consumer.fetcher import Fetcher

_log = logging.getLogger(__name__)

COMMITTED: Final = "committed"  # start at the group's offset or, without one, by auto.offset.reset


class _Sought(NamedTuple):
    """A partition being looked up. A response is valid only if the generation has not changed."""

    state: AssignedPartition
    generation: int

    @property
    def is_current(self) -> bool:
        return self.state.is_current(self.generation)


class Positions:
    """Looks up starting positions, either in the background for polls or while a caller waits."""

    def __init__(
        self, cluster: Cluster, offsets: OffsetFinder, fetcher: Fetcher, auto_offset_reset: str
    ) -> None:
        self._cluster = cluster
        self._clock = cluster.seams.clock
        self._offsets = offsets
        self._fetcher = fetcher
        self._auto_offset_reset = auto_offset_reset
        self._timeout_ms = cluster.config.default_api_timeout_ms
        self._tasks: dict[asyncio.Task[None], None] = {}
        self._waiting: list[AssignedPartition] = []  # partitions whose topics do not exist yet
        self._retries = RetryLog(MOMENT_MS)
        self.commits: Commits | None = None  # None unless the consumer is in a group
        cluster.metadata.add_listener(self._resume)

    async def close(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # ---- for a poll ----

    def look_up(self, states: Iterable[AssignedPartition]) -> None:
        """Start the lookups that are due. Each response ends the wait of the fetcher.

        Positions are set as the responses arrive. Errors are stored with the partitions.
        """
        now_ms = self._clock.monotonic_ms()
        of_group: list[_Sought] = []
        without_leader: list[_Sought] = []
        by_leader: dict[BrokerAddress, list[_Sought]] = {}
        for state in states:
            if state.reset is None or state.error is not None or now_ms < state.not_before_ms:
                continue
            if state.sought_in == state.generation:
                continue  # the lookup is under way
            # The coordinator stores the group's offset; the leader, which may have to be found
            # first, reports both ends of the log. With auto.offset.reset=none, no broker is asked
            # (CO-5).
            sought = _Sought(state, state.generation)
            leader = self._cluster.metadata.view.leader(state.topic_partition)
            if state.reset == COMMITTED:
                of_group.append(sought)
            elif state.reset == "none":
                state.error = _no_offset(state)
            elif leader is not None:
                by_leader.setdefault(leader, []).append(sought)
            elif self._needs_metadata(state):
                without_leader.append(sought)
        if of_group:
            self._begin("a lookup of committed offsets", of_group, self._start_at_group(of_group))
        if without_leader:
            self._begin("a lookup of leaders", without_leader, self._refresh())
        for node, those in by_leader.items():
            self._begin(f"a lookup of offsets at {node}", those, self._start_by_rule(node, those))

    def _needs_metadata(self, state: AssignedPartition) -> bool:
        """Return whether metadata is needed in order to find the leader of the partition."""
        metadata = self._cluster.metadata
        name = state.topic_partition
        topic = metadata.view.topics.get(name.topic)
        if topic is not None and name.partition not in topic.partitions:
            # Another broker may know of newly added partitions.
            if not self._is_news(state, UnknownPartition):
                return True
            self._fail(state, unknown_partition(topic, name.partition))
            return False
        error = metadata.view.topic_error(name.topic)
        if error is not None and not error.retriable:
            metadata.forget(name.topic)  # the next response may differ
            self._fail(state, error)
            return False
        if topic is None and error is None:
            metadata.track([name.topic])
            return True  # the topic has not been requested yet
        kind = LeaderNotAvailable if error is None else type(error)
        if self._is_news(state, kind):
            self._warn(state, reason(kind))
        if kind is UnknownTopicOrPartition and metadata.is_awaited(name.topic):
            # The metadata task keeps requesting the topic after each backoff; `_resume` ends the
            # wait.
            self._pause(state)
            self._waiting.append(state)
            return False
        return True

    def _begin(self, name: str, those: Sequence[_Sought], work: Coroutine[Any, Any, None]) -> None:
        for state, generation in those:
            state.sought_in = generation

        async def ask() -> None:
            try:
                await work
            except BarnabasError as error:
                self._on_failure(those, error)
            finally:
                for state, generation in those:
                    if state.sought_in == generation:
                        state.sought_in = -1
            # Look up before sending any fetch to the same leaders, because a fetch might delay the
            # lookup.
            self.look_up(sought.state for sought in those if not sought.state.is_dropped)
            self._fetcher.wake()

        task = self._cluster.tasks.start(name, ask())
        self._tasks[task] = None
        task.add_done_callback(lambda done: self._tasks.pop(done))

    async def _refresh(self) -> None:
        await self._cluster.metadata.refresh()

    async def _start_at_group(self, those: Sequence[_Sought]) -> None:
        await self._go_to_committed([sought.state for sought in those])

    async def _start_by_rule(self, node: BrokerAddress, those: Sequence[_Sought]) -> None:
        timestamps = {state.topic_partition: _timestamp(state) for state, _ in those}
        answers = await self._offsets.ask(node, timestamps)
        for sought in those:
            if not sought.is_current:
                continue
            state = sought.state
            at = answers.get(state.topic_partition)
            if at is None:  # the broker omitted it
                self._retry(state, LeaderNotAvailable("no answer"))
            elif isinstance(at, BarnabasError):
                self._on_failure([sought], at)
            else:
                self._retries.over(state.topic_partition)
                state.seek(at.offset, at.leader_epoch)

    # ---- failures ----

    def _on_failure(self, those: Sequence[_Sought], error: BarnabasError) -> None:
        for sought in those:
            if not sought.is_current:
                continue
            if is_passing(error):
                self._retry(sought.state, error)
            else:
                self._fail(sought.state, error)

    def _retry(self, state: AssignedPartition, error: BarnabasError) -> None:
        """Request new metadata, and retry after the backoff."""
        if self._is_news(state, type(error)):
            self._warn(state, str(error))
        self._pause(state)
        self._cluster.metadata.request_refresh()

    def _fail(self, state: AssignedPartition, error: BarnabasError) -> None:
        """Let the next poll raise the error. Later polls skip this partition during the backoff."""
        state.error = error
        self._pause(state)

    def _resume(self) -> None:
        """End the backoff of partitions without a topic, because new metadata has arrived."""
        for state in self._waiting:
            state.not_before_ms = 0
        if self._waiting:
            self._waiting.clear()
            self._fetcher.wake()

    def _pause(self, state: AssignedPartition) -> None:
        state.not_before_ms = self._clock.monotonic_ms() + self._cluster.config.retry_backoff_ms

    def _is_news(self, state: AssignedPartition, kind: type[BarnabasError]) -> bool:
        return self._retries.is_news(state.topic_partition, kind, self._clock.monotonic_ms())

    def _warn(self, state: AssignedPartition, why: str) -> None:
        _log.warning(
            "%s has no position to read from yet, retrying: %s", state.topic_partition, why
        )

    # ---- for a waiting caller ----

    async def find(self, states: Sequence[AssignedPartition]) -> None:
        """Set the positions to the group's offsets, or according to the rule of each partition.

        Raises the error of any partition that still has no position, after `default.api.timeout.ms`
        at most.
        """
        await self._go_to_committed([state for state in states if state.reset == COMMITTED])
        # Partitions without a committed offset follow auto.offset.reset.
        states = [state for state in states if state.reset is not None]
        for state in states:
            if state.reset == "none":
                raise _no_offset(state)
        timestamps = {state.topic_partition: _timestamp(state) for state in states}
        generations = [state.generation for state in states]
        found = await self._offsets.find(timestamps, self._timeout_ms)
        for state, generation in zip(states, generations, strict=True):
            # A seek by the user in the meantime overrides the response.
            if state.generation == generation:
                at = found[state.topic_partition]
                state.seek(at.offset, at.leader_epoch)

    async def _go_to_committed(self, states: Sequence[AssignedPartition]) -> None:
        if not states or self.commits is None:
            return
        found = await self.commits.fetch(state.topic_partition for state in states)
        self.commits.start_at(found)
        for state in states:
            if state.reset != COMMITTED:
                continue  # the user has since called seek
            if state.topic_partition in found:
                at = found[state.topic_partition]
                state.seek(at.offset, at.leader_epoch)
            else:
                state.seek_by(self._auto_offset_reset)


def _timestamp(state: AssignedPartition) -> int:
    return EARLIEST if state.reset == "earliest" else LATEST


def _no_offset(state: AssignedPartition) -> NoOffsetForPartition:
    return NoOffsetForPartition(
        f"no position for {state.topic_partition}, and auto.offset.reset is none: "
        "seek to an offset, or set it to earliest or latest"
    )
