"""Queues the events that a controller has not processed yet, and the callers that wait for a round.

An event only leaves a mark in the queue. The next round takes all marks and reads the current
state, so the order and the number of events do not matter. When the term ends, all waiting callers
get an error.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

from barnabas.controller.controller import Controller, Decision
from barnabas.errors import NotController
from barnabas.named_tuple import NamedTuple
from barnabas.types import TopicPartition

if TYPE_CHECKING:
    from barnabas.broker.controller.log_ends import LogEnds

T = TypeVar("T")

ANY_EPOCH = -1

Reports = dict[tuple[int, int], dict[TopicPartition, bool]]
"""Whether each replica is lost, keyed by broker id and epoch (-1 for any epoch) and then by
partition.
"""


class Request(NamedTuple):
    """A request that the machine has to decide on. `answer` receives the response."""

    decide: Callable[[Controller], tuple[Decision, Any]]
    answer: asyncio.Future[Any]


class ReplicaReports:
    """Holds the reports about replicas that the controller has not finished processing.

    A report says either that a replica is hosted or that it was lost with a log directory. A
    damaged log is regarded as lost until another replica has become the leader. The log then starts
    empty, and the broker hosts the replica again under the same registration. For this reason, the
    latest report about a replica takes precedence over an earlier one, regardless of whether the
    earlier report is waiting, being processed, or already part of the image.
    """

    __slots__ = ("_taken", "_waiting")

    def __init__(self) -> None:
        self._waiting: Reports = {}
        self._taken: Reports = {}

    def __len__(self) -> int:
        """Return the number of replicas about which a report is waiting."""
        return sum(len(reported) for reported in self._waiting.values())

    def add(
        self, broker_id: int, broker_epoch: int, names: Iterable[TopicPartition], *, is_lost: bool
    ) -> None:
        """Add a live broker's report about these replicas, which replaces its earlier reports."""
        names = list(names)
        for (reporter, _), reported in self._waiting.items():
            # The registration does not matter, because the latest report describes the disk.
            if reporter == broker_id:
                for name in names:
                    reported.pop(name, None)
        reported = self._waiting.setdefault((broker_id, broker_epoch), {})
        reported.update(dict.fromkeys(names, is_lost))

    def last(self, broker_id: int, broker_epoch: int, name: TopicPartition) -> bool | None:
        """Return whether the latest report describes the replica as lost, or None if there is no
        report.
        """
        for reports in (self._waiting, self._taken):
            for epoch in (broker_epoch, ANY_EPOCH) if reports else ():
                is_lost = reports.get((broker_id, epoch), {}).get(name)
                if is_lost is not None:
                    return is_lost
        return None

    def take(self) -> Reports:
        """Take all waiting reports. They still count until they have been processed."""
        self._taken, self._waiting = self._waiting, {}
        return self._taken

    def on_processed(self) -> None:
        """Forget the reports returned by `take`, which are now part of the image."""
        self._taken = {}


class EventQueue:
    """The events and waiting callers of a single term."""

    __slots__ = (
        "_due",
        "_served",
        "_waiting",
        "changed_configs",
        "changed_paths",
        "changed_topics",
        "defaults_changed",
        "deleted_logs",
        "ended",
        "log_ends",
        "rebalance_is_due",
        "replica_reports",
        "requests",
        "versions_changed",
    )

    def __init__(self) -> None:
        self._due = asyncio.Event()
        # callers waiting for the end of the next round
        self._waiting: list[asyncio.Future[None]] = []
        # callers waiting for the end of the current round
        self._served: list[asyncio.Future[None]] = []
        self.ended: Exception | None = None
        self.changed_paths: dict[str, None] = {}
        """The watched paths whose children may have changed."""
        self.changed_topics: dict[str, None] = {}
        """The topics whose nodes have changed."""
        self.changed_configs: dict[str, None] = {}
        """The topics whose config nodes have changed."""
        self.replica_reports = ReplicaReports()
        self.deleted_logs: dict[int, dict[TopicPartition, None]] = {}
        """The logs that brokers have deleted after their partitions were moved away."""
        self.log_ends: list[LogEnds] = []
        self.requests: list[Request] = []
        self.defaults_changed = False
        self.rebalance_is_due = False
        self.versions_changed = True  # an earlier term of this epoch may have asked for versions

    # --- events and requests ---------------------------------------------------------------------

    def path_changed(self, path: str) -> None:
        """Record that a watched node's children may have changed."""
        self.changed_paths[path] = None
        self.wake()

    def topic_changed(self, topic: str) -> None:
        """Record that a topic's node has changed."""
        self.changed_topics[topic] = None
        self.wake()

    def config_changed(self, topic: str) -> None:
        """Record that a topic's config has changed."""
        self.changed_configs[topic] = None
        self.wake()

    def replicas_lost(
        self, broker_id: int, names: Iterable[TopicPartition], broker_epoch: int = ANY_EPOCH
    ) -> None:
        """Record that a live broker has lost these replicas together with a log directory
        (KIP-112).
        """
        self.replica_reports.add(broker_id, broker_epoch, names, is_lost=True)
        self.wake()

    def replicas_hosted(
        self, broker_id: int, names: Iterable[TopicPartition], broker_epoch: int
    ) -> None:
        """Record that a live broker hosts these replicas again after it had lost them."""
        self.replica_reports.add(broker_id, broker_epoch, names, is_lost=False)
        self.wake()

    def logs_deleted(self, broker_id: int, names: Iterable[TopicPartition]) -> None:
        """Record that a broker has deleted its logs of partitions that were moved to
        other brokers.
        """
        self.deleted_logs.setdefault(broker_id, {}).update(dict.fromkeys(names))
        self.wake()

    def log_ends_read(self, ends: LogEnds) -> None:
        """Record the log end offsets of some replicas."""
        self.log_ends.append(ends)
        self.wake()

    def on_versions(self) -> None:
        """Record that a broker has reported its supported versions."""
        self.versions_changed = True
        self.wake()

    async def whole_round(self) -> None:
        """Wait for a round that starts after this call and so reads everything that was committed
        before it.
        """
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._add(self._waiting, future)
        await future

    async def submit(self, decide: Callable[[Controller], tuple[Decision, T]]) -> T:
        """Have the machine make a decision, and return the response once the decision has been
        committed and delivered.

        Raises NotController, or any KafkaError raised by `decide`.
        """
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._add(self.requests, Request(decide, future))
        return await future

    def _add(self, waiting: list[Any], one: object) -> None:
        if self.ended is not None:
            raise NotController(f"the controller is resigning: {self.ended}")
        waiting.append(one)
        self.wake()

    def wake(self) -> None:
        """Make sure that another round takes place."""
        self._due.set()

    def end(self, error: Exception) -> None:
        """End the term with this error. If it has already ended, the earlier error is kept."""
        self.ended = self.ended or error
        self.wake()

    # --- rounds ----------------------------------------------------------------------------------

    async def round_due(self) -> None:
        """Wait until a round is due. Raises the error that ended the term."""
        if self.ended is None:
            await self._due.wait()
        if self.ended is not None:
            raise self.ended

    def begin_round(self) -> None:
        """Begin a round. Events that occur from now on wait for the next one."""
        self._due.clear()
        # This round serves all callers that are already waiting. Later callers must wait for the
        # next round.
        self._served, self._waiting = [*self._served, *self._waiting], []

    def end_round(self) -> None:
        """Wake the callers that this round served."""
        served, self._served = self._served, []
        for future in served:
            if not future.done():  # otherwise its caller was cancelled
                future.set_result(None)

    def settle_first(self, result: object = None, error: Exception | None = None) -> None:
        """Answer the first request and remove it from the queue."""
        answer = self.requests.pop(0).answer
        if answer.done():
            return
        if error is None:
            answer.set_result(result)
        else:
            answer.set_exception(error)

    def close(self, error: Exception) -> None:
        """End the term. All waiting callers get the error."""
        waiting = [*self._served, *self._waiting, *(each.answer for each in self.requests)]
        self._served, self._waiting, self.requests = [], [], []
        for future in waiting:
            if not future.done():
                future.set_exception(error)
