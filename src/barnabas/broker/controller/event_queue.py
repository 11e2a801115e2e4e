"""Queues the events that a controller still has to process, and the callers waiting for a round.

An event only sets a mark in the queue. The next round takes the marks and reads the current state,
so the order and number of events do not matter. When the term ends, all waiting callers get an
error.
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
"""Whether each replica is lost, by broker and broker epoch (-1: any) and by partition."""


class Request(NamedTuple):
    """A request on which the machine decides; `answer` receives the response."""

    decide: Callable[[Controller], tuple[Decision, Any]]
    answer: asyncio.Future[Any]


class ReplicaReports:
    """Reports about replicas that the controller has not finished processing.

    A report states whether a replica is hosted or was lost with a log directory. A damaged log
    counts as lost until another replica is the leader; then it starts empty, and the broker hosts
    the replica again in the same registration. Therefore, the latest report about a replica counts,
    whether the previous one is waiting, in progress, or part of the image.
    """

    __slots__ = ("_taken", "_waiting")

    def __init__(self) -> None:
        self._waiting: Reports = {}
        self._taken: Reports = {}

    def __len__(self) -> int:
        """Return the number of replicas with a waiting report."""
        return sum(len(reported) for reported in self._waiting.values())

    def add(
        self, broker_id: int, broker_epoch: int, names: Iterable[TopicPartition], *, is_lost: bool
    ) -> None:
        """Add a live broker's report about these replicas; it replaces earlier reports."""
        names = list(names)
        for (reporter, _), reported in self._waiting.items():
            # Any registration will do, because the latest report describes the disk.
            if reporter == broker_id:
                for name in names:
                    reported.pop(name, None)
        reported = self._waiting.setdefault((broker_id, broker_epoch), {})
        reported.update(dict.fromkeys(names, is_lost))

    def last(self, broker_id: int, broker_epoch: int, name: TopicPartition) -> bool | None:
        """Return whether the latest report describes the replica as lost; None without reports."""
        for reports in (self._waiting, self._taken):
            for epoch in (broker_epoch, ANY_EPOCH) if reports else ():
                is_lost = reports.get((broker_id, epoch), {}).get(name)
                if is_lost is not None:
                    return is_lost
        return None

    def take(self) -> Reports:
        """Take all waiting reports; they count until they are processed."""
        self._taken, self._waiting = self._waiting, {}
        return self._taken

    def on_processed(self) -> None:
        """Forget the reports that `take` returned, once the image includes them."""
        self._taken = {}


class EventQueue:
    """The events and waiting callers of one term."""

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
        # callers that wait for the end of the next round
        self._waiting: list[asyncio.Future[None]] = []
        # callers that wait for the end of the round in progress
        self._served: list[asyncio.Future[None]] = []
        self.ended: Exception | None = None
        self.changed_paths: dict[str, None] = {}
        """The paths whose children may have changed."""
        self.changed_topics: dict[str, None] = {}
        """The topics whose node has changed."""
        self.changed_configs: dict[str, None] = {}
        """The topics whose config node has changed."""
        self.replica_reports = ReplicaReports()
        self.deleted_logs: dict[int, dict[TopicPartition, None]] = {}
        """The logs of moved partitions that brokers have deleted."""
        self.log_ends: list[LogEnds] = []
        self.requests: list[Request] = []
        self.defaults_changed = False
        self.rebalance_is_due = False
        self.versions_changed = True  # an earlier term of this epoch may have asked for versions

    # --- events and requests ---------------------------------------------------------------------

    def path_changed(self, path: str) -> None:
        """Record that the children of a watched node may have changed."""
        self.changed_paths[path] = None
        self.wake()

    def topic_changed(self, topic: str) -> None:
        """Record that the node of a topic has changed."""
        self.changed_topics[topic] = None
        self.wake()

    def config_changed(self, topic: str) -> None:
        """Record that the config of a topic has changed."""
        self.changed_configs[topic] = None
        self.wake()

    def replicas_lost(
        self, broker_id: int, names: Iterable[TopicPartition], broker_epoch: int = ANY_EPOCH
    ) -> None:
        """Record that a live broker has lost these replicas with a log directory (KIP-112)."""
        self.replica_reports.add(broker_id, broker_epoch, names, is_lost=True)
        self.wake()

    def replicas_hosted(
        self, broker_id: int, names: Iterable[TopicPartition], broker_epoch: int
    ) -> None:
        """Record that a live broker hosts these replicas again after losing them."""
        self.replica_reports.add(broker_id, broker_epoch, names, is_lost=False)
        self.wake()

    def logs_deleted(self, broker_id: int, names: Iterable[TopicPartition]) -> None:
        """Record that a broker has deleted its logs of partitions moved to other brokers."""
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
        """Wait for a round that starts after this call, which reads everything committed so far."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._add(self._waiting, future)
        await future

    async def submit(self, decide: Callable[[Controller], tuple[Decision, T]]) -> T:
        """Have the machine decide; return the response once the decision is committed and
        delivered.

        Raises the KafkaError that `decide` raises, or NotController.
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
        """Schedule another round."""
        self._due.set()

    def end(self, error: Exception) -> None:
        """End the term with this error. Only the first error is used."""
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
        """Begin a round; later events wait for the next one."""
        self._due.clear()
        # This round serves the callers that are already waiting; later callers wait for the next.
        self._served, self._waiting = [*self._served, *self._waiting], []

    def end_round(self) -> None:
        """Wake the callers that this round served."""
        served, self._served = self._served, []
        for future in served:
            if not future.done():  # otherwise its caller was cancelled
                future.set_result(None)

    def settle_first(self, result: object = None, error: Exception | None = None) -> None:
        """Answer the first request and remove it."""
        answer = self.requests.pop(0).answer
        if answer.done():
            return
        if error is None:
            answer.set_result(result)
        else:
            answer.set_exception(error)

    def close(self, error: Exception) -> None:
        """End the term; every waiting caller gets the error."""
        waiting = [*self._served, *self._waiting, *(each.answer for each in self.requests)]
        self._served, self._waiting, self.requests = [], [], []
        for future in waiting:
            if not future.done():
                future.set_exception(error)
