"""The events that a controller has yet to process, and the callers waiting for a round.

An event from outside only leaves a mark here, in any order and however often; the next round takes
the marks and reads the state at that time. Once the term has ended no caller is left waiting.
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
"""True for each lost replica, by broker and broker epoch (-1: any)."""


class Request(NamedTuple):
    """A request for the machine to decide; `answer` gets what it returns with the decision."""

    decide: Callable[[Controller], tuple[Decision, Any]]
    answer: asyncio.Future[Any]


class ReplicaReports:
    """The reports about replicas that a controller has yet to process, or is processing.

    A report says whether a replica is hosted, or lost with a log directory. A damaged log is lost
    until another replica leads; then it starts empty, and the same registration hosts the replica
    that it had lost. So the last report about a replica counts, whether the previous one is waiting
    for a round, being written in a round, or in the image.
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
        """Add a live broker's report about these replicas, replacing its earlier ones."""
        names = list(names)
        for (reporter, _), reported in self._waiting.items():
            # For any registration: the newest report is the truth about the disk.
            if reporter == broker_id:
                for name in names:
                    reported.pop(name, None)
        reported = self._waiting.setdefault((broker_id, broker_epoch), {})
        reported.update(dict.fromkeys(names, is_lost))

    def last(self, broker_id: int, broker_epoch: int, name: TopicPartition) -> bool | None:
        """Return whether the replica's last report says that it is lost; None without reports."""
        for reports in (self._waiting, self._taken):
            for epoch in (broker_epoch, ANY_EPOCH) if reports else ():
                is_lost = reports.get((broker_id, epoch), {}).get(name)
                if is_lost is not None:
                    return is_lost
        return None

    def take(self) -> Reports:
        """Take all waiting reports; they still count until they are processed."""
        self._taken, self._waiting = self._waiting, {}
        return self._taken

    def on_processed(self) -> None:
        """Note that the reports taken are in the image now."""
        self._taken = {}


class EventQueue:
    """The events of one term."""

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
        self._waiting: list[asyncio.Future[None]] = []  # for the end of the next round
        self._served: list[asyncio.Future[None]] = []  # for the end of the round in progress
        self.ended: Exception | None = None
        self.changed_paths: dict[str, None] = {}
        """Paths whose children may have changed."""
        self.changed_topics: dict[str, None] = {}
        """Topics whose node has changed."""
        self.changed_configs: dict[str, None] = {}
        """Topics whose config node has changed."""
        self.replica_reports = ReplicaReports()
        self.deleted_logs: dict[int, dict[TopicPartition, None]] = {}
        """Logs of moved partitions that brokers have deleted."""
        self.log_ends: list[LogEnds] = []
        self.requests: list[Request] = []
        self.defaults_changed = False
        self.rebalance_is_due = False
        self.versions_changed = True  # an earlier term of this epoch may have asked for versions

    # --- what comes in ---------------------------------------------------------------------------

    def path_changed(self, path: str) -> None:
        """Note that the children of a watched node may have changed."""
        self.changed_paths[path] = None
        self.wake()

    def topic_changed(self, topic: str) -> None:
        """Note that the node of a topic has changed."""
        self.changed_topics[topic] = None
        self.wake()

    def config_changed(self, topic: str) -> None:
        """Note that the config of a topic has changed."""
        self.changed_configs[topic] = None
        self.wake()

    def replicas_lost(
        self, broker_id: int, names: Iterable[TopicPartition], broker_epoch: int = ANY_EPOCH
    ) -> None:
        """Note that a live broker has lost these replicas with a log directory (KIP-112)."""
        self.replica_reports.add(broker_id, broker_epoch, names, is_lost=True)
        self.wake()

    def replicas_hosted(
        self, broker_id: int, names: Iterable[TopicPartition], broker_epoch: int
    ) -> None:
        """Note that a live broker hosts these replicas again, which it had lost."""
        self.replica_reports.add(broker_id, broker_epoch, names, is_lost=False)
        self.wake()

    def logs_deleted(self, broker_id: int, names: Iterable[TopicPartition]) -> None:
        """Note that a broker has deleted its logs of partitions that have moved away from it."""
        self.deleted_logs.setdefault(broker_id, {}).update(dict.fromkeys(names))
        self.wake()

    def log_ends_read(self, ends: LogEnds) -> None:
        """Note where the logs of some replicas end."""
        self.log_ends.append(ends)
        self.wake()

    def on_versions(self) -> None:
        """Note that a broker has reported the versions that it supports."""
        self.versions_changed = True
        self.wake()

    async def whole_round(self) -> None:
        """Wait for a round that begins after this call and so reads everything committed now."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._add(self._waiting, future)
        await future

    async def submit(self, decide: Callable[[Controller], tuple[Decision, T]]) -> T:
        """Let the machine decide; returns its answer once that is committed and delivered.

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
        """Make another round due."""
        self._due.set()

    def end(self, error: Exception) -> None:
        """End the term with this error; only the first one counts."""
        self.ended = self.ended or error
        self.wake()

    # --- what a round does -----------------------------------------------------------------------

    async def round_due(self) -> None:
        """Return when there is something to do. Raises the error that has ended the term."""
        if self.ended is None:
            await self._due.wait()
        if self.ended is not None:
            raise self.ended

    def begin_round(self) -> None:
        """Leave events that arrive from now on to another round."""
        self._due.clear()
        # This round serves calls from before this moment; later callers wait for the next round.
        self._served, self._waiting = [*self._served, *self._waiting], []

    def end_round(self) -> None:
        """Wake the callers that arrived before the round began."""
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
        """Give every caller the error: the term is over."""
        waiting = [*self._served, *self._waiting, *(each.answer for each in self.requests)]
        self._served, self._waiting, self.requests = [], [], []
        for future in waiting:
            if not future.done():
                future.set_exception(error)
