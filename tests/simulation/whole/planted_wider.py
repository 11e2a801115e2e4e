"""Bugs that only the wider world finds: what deletes too much, stops too soon or takes too long."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import pytest

from barnabas.broker.replica import Replica
from barnabas.broker.replicas import Replicas
from barnabas.client.partition_queue import PartitionQueue
from barnabas.storage.compaction.transactions import Transactions
from barnabas.storage.log import Log
from tests.simulation.whole.planted import Plant

_LOOKS = 8
_SYNCS = 16


def _directory_that_falls_with_any_log(patch: pytest.MonkeyPatch) -> None:
    """Also with one that was deleted, under whose name there is another by now (ST-10)."""

    def fail(self: Replicas, replica: Replica, error: OSError) -> None:
        if replica.topic_partition not in self._offline:
            self.directory_failed(self._store.directory_of(replica.topic_partition), error)

    patch.setattr(Replicas, "fail_directory", fail)


def _leader_that_seldom_looks(patch: pytest.MonkeyPatch) -> None:
    """Its followers may lag for longer than they may (RE-8)."""
    check_isr, looks = Replicas.check_isr, [0]

    def seldom(self: Replicas, now_ms: int) -> None:
        looks[0] += 1
        if looks[0] % _LOOKS == 0:
            check_isr(self, now_ms)

    patch.setattr(Replicas, "check_isr", seldom)


def _cut_that_takes_long(patch: pytest.MonkeyPatch) -> None:
    """It waits for the disk again and again, on the loop."""
    truncate = Log.truncate

    def slowly(self: Log, offset: int, *, settles: bool = True) -> None:
        truncate(self, offset, settles=settles)
        for _ in range(_SYNCS):
            self._files.sync(self.directory)

    patch.setattr(Log, "truncate", slowly)


def _leader_that_begins_slowly(patch: pytest.MonkeyPatch) -> None:
    """Two syncs on the loop for each partition that it is to lead."""
    assign = Log.assign_leader_epoch

    def slowly(self: Log, leader_epoch: int) -> None:
        assign(self, leader_epoch)
        for _ in range(2):
            self._files.sync(self.directory)

    patch.setattr(Log, "assign_leader_epoch", slowly)


def _producer_that_gives_sequences_up(patch: pytest.MonkeyPatch) -> None:
    """Behind a batch that is in doubt it sends the next ones under another identity (KIP-360)."""
    lost = property(lambda queue: queue.unresolved >= 0)
    patch.setattr(PartitionQueue, "is_unresolvable", lost, raising=False)


def _cleaner_that_keeps_what_was_aborted(patch: pytest.MonkeyPatch) -> None:
    """And forgets that it was, for it drops the entries of the index (ST-7)."""

    def end(self: Transactions, header: Any, marker: Any) -> tuple[bool, None]:
        return True, None

    patch.setattr(Transactions, "is_aborted", lambda self, header: False)
    patch.setattr(Transactions, "end", end)


WIDER: Mapping[str, Plant] = MappingProxyType(
    {
        "directory": _directory_that_falls_with_any_log,
        "laggards": _leader_that_seldom_looks,
        "cut": _cut_that_takes_long,
        "leading": _leader_that_begins_slowly,
        "sequences": _producer_that_gives_sequences_up,
        "cleaner": _cleaner_that_keeps_what_was_aborted,
    }
)

FOUND_BY: Mapping[str, int] = MappingProxyType(
    {"cleaner": 0, "cut": 5, "directory": 0, "laggards": 2, "leading": 2, "sequences": 25}
)
"""The seed that finds each."""
