"""Bugs that only the wider world finds: what deletes too much, stops too soon or takes too long."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from random import Random
from types import MappingProxyType
from typing import Any

import pytest

from barnabas.broker.partitions.directory_failure import DirectoryFailures
from barnabas.broker.partitions.housekeeping import Housekeeping
from barnabas.broker.partitions.log_changes import LogChanges
from barnabas.broker.partitions.replica import Replica
from barnabas.broker.runtime.clock_jumps import ClockJumps
from barnabas.broker.runtime.steps import Steps
from barnabas.client.producer.batch import CheckedRecord, ProducerRecord
from barnabas.client.producer.intake import Intake
from barnabas.client.producer.partition_queue import PartitionQueue
from barnabas.client.sync.outbox import Outbox
from barnabas.client.tasks import Tasks
from barnabas.errors import BarnabasError
from barnabas.storage.compaction.transactions import Transactions
from barnabas.storage.log import Log
from barnabas.storage.log_directories import LogDirectories
from barnabas.storage.log_truncations import LogTruncations
from barnabas.types import TopicPartition
from simulation.options import Fault
from simulation.whole.plan import DISK_SLOW, Plan, at_a_deletion, draw
from tests.simulation.whole.planted import Plant


def _directory_that_falls_with_any_log(patch: pytest.MonkeyPatch) -> None:
    """Also with one that was deleted, under whose name there is another by now (ST-10)."""

    def fail(self: DirectoryFailures, replica: Replica, error: OSError) -> None:
        replicas = self.removal.replicas
        if not replicas.is_offline(replica.topic_partition):
            self.on_error(replicas.store.directory_of(replica.topic_partition), error)

    patch.setattr(DirectoryFailures, "on_replica_error", fail)


def _housekeeping_that_is_one_queue(patch: pytest.MonkeyPatch) -> None:
    """While the disk has rolled segments to write, no leader looks who lags (RE-8)."""
    start = Housekeeping.start

    def start_in_line(self: Housekeeping) -> None:
        turn = asyncio.Lock()
        for each in self._rounds:
            each.action = partial(in_line, turn, each.action)
        start(self)

    async def in_line(turn: asyncio.Lock, action: Callable[[], Awaitable[None]]) -> None:
        async with turn:
            await action()

    patch.setattr(Housekeeping, "start", start_in_line)


def _cut_that_waits_for_the_disk(patch: pytest.MonkeyPatch) -> None:
    """On the loop, for its log and for the checkpoints of its directory."""
    begin = LogTruncations.begin

    def truncate(self: LogTruncations, topic_partition: TopicPartition, offset: int) -> None:
        begin(self, topic_partition, offset)
        self._logs[topic_partition].settle()

    patch.setattr(LogTruncations, "begin", truncate)


def _leader_that_begins_slowly(patch: pytest.MonkeyPatch) -> None:
    """Two syncs on the loop for each partition that it is to lead."""
    assign = Log.assign_leader_epoch

    def slowly(self: Log, leader_epoch: int) -> None:
        assign(self, leader_epoch)
        for _ in range(2):
            self._segments.active.files.sync(self.directory)

    patch.setattr(Log, "assign_leader_epoch", slowly)


def _calendar_that_is_believed(patch: pytest.MonkeyPatch) -> None:
    """Whatever it says, records are as old as that (ST-6)."""
    patch.setattr(ClockJumps, "are_over", property(lambda self: True))


def _deletion_that_is_reported_too_soon(patch: pytest.MonkeyPatch) -> None:
    """Before it is durable; and what comes back after it is taken for the new topic's (TP-4)."""

    def sync_names(self: LogDirectories, path: Path) -> None:
        pass

    def set_strays_aside(self: LogChanges, request: Any, broker_epoch: int) -> Steps[None]:
        yield from ()

    patch.setattr(LogDirectories, "sync_names", sync_names)
    patch.setattr(LogChanges, "set_strays_aside", set_strays_aside)


def _producer_that_gives_sequences_up(patch: pytest.MonkeyPatch) -> None:
    """Behind a batch that is in doubt it sends the next ones under another identity (KIP-360)."""
    lost = property(lambda queue: queue.unresolved >= 0)
    patch.setattr(PartitionQueue, "is_unresolvable", lost)


def _cleaner_that_keeps_what_was_aborted(patch: pytest.MonkeyPatch) -> None:
    """And forgets that it was, for it drops the entries of the index (ST-7)."""

    def end(self: Transactions, header: Any, marker: Any) -> tuple[bool, None]:
        return True, None

    patch.setattr(Transactions, "is_aborted", lambda self, header: False)
    patch.setattr(Transactions, "end", end)


def _drain_that_dies_of_an_odd_record(patch: pytest.MonkeyPatch) -> None:
    """And takes with it, in silence, all that is accepted from then on (PR-8)."""

    def checked(self: Intake, record: ProducerRecord) -> CheckedRecord:
        headers: Any = record.headers or ()
        if not headers:
            return check(self, record)
        return check(self, record._replace(headers=()))._replace(headers=headers)

    async def drain_all(self: Outbox) -> None:
        while deliveries := self._take():
            for each in deliveries:
                try:
                    accepted = await self._intake.send(each.record)
                except (BarnabasError, ValueError) as error:
                    each.settle(None, error)
                else:
                    each.settle(accepted, None)
        self._passed.set_result(None)
        self._drain = None

    async def drained(self: Outbox) -> None:
        if self._drain is not None:
            await asyncio.wait([self._drain])

    check = Intake.check
    patch.setattr(Intake, "check", checked)
    patch.setattr(Outbox, "_drain_all", drain_all)
    patch.setattr(Outbox, "wait_until_drained", drained)
    patch.setattr(Tasks, "_on_end", lambda self, name, task: task.cancelled() or task.exception())


def _start_that_believes_the_clock(patch: pytest.MonkeyPatch) -> None:
    """A broker that finds a wrong calendar deletes what is young (ST-6)."""
    patch.setattr(ClockJumps, "begin", lambda self, now_ms, wall_ms, seen_ms: None)


WIDER: Mapping[str, Plant] = MappingProxyType(
    {
        "boot": _start_that_believes_the_clock,
        "directory": _directory_that_falls_with_any_log,
        "queue": _housekeeping_that_is_one_queue,
        "cut": _cut_that_waits_for_the_disk,
        "leading": _leader_that_begins_slowly,
        "calendar": _calendar_that_is_believed,
        "deletion": _deletion_that_is_reported_too_soon,
        "drain": _drain_that_dies_of_an_odd_record,
        "sequences": _producer_that_gives_sequences_up,
        "cleaner": _cleaner_that_keeps_what_was_aborted,
    }
)

FOUND_BY: Mapping[str, int] = MappingProxyType(
    {
        "boot": 9_100_051,
        "calendar": 9,
        "cleaner": 1,
        "cut": 0,
        "deletion": 11,
        "directory": 42,
        "drain": 2,
        "leading": 2,
        "queue": 23,
        "sequences": 29,
    }
)
"""The seed that finds each."""


def drawn(kind: str, seed: int) -> Plan:
    """The plan of a seed in which this kind is looked for."""
    plan = draw(seed)
    if kind == "deletion":
        return _with_deletions(plan)
    if kind != "queue":
        return plan
    # Drawn faults hardly ever let a follower fall behind just before all disks are slow.
    isolation = Fault(5_000, "isolate", 1, 1, 7_000)
    slow = [Fault(5_600, DISK_SLOW, each, 1, 6_000) for each in range(2, plan.brokers + 1)]
    return plan._replace(
        lag_time_max_ms=2_000, flush_interval_messages=1, faults=(isolation, *slow)
    )


def _with_deletions(plan: Plan) -> Plan:
    """A plan of nothing but power cuts at deletions: of drawn ones hardly any has two in time."""
    random = Random(f"deletions {plan.seed}")
    faults = sorted(at_a_deletion(plan, random) for _ in range(6))
    return plan._replace(has_fleeting=True, faults=tuple(faults), drills=())
