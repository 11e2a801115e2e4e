"""Bugs that only the wider world finds: what deletes too much, stops too soon or takes too long."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import pytest

from barnabas.broker.replica import Replica
from barnabas.broker.replicas import Replicas
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


WIDER: Mapping[str, Plant] = MappingProxyType(
    {
        "directory": _directory_that_falls_with_any_log,
        "laggards": _leader_that_seldom_looks,
        "cut": _cut_that_takes_long,
        "leading": _leader_that_begins_slowly,
    }
)

FOUND_BY: Mapping[str, int] = MappingProxyType(
    {"cut": 5, "directory": 0, "laggards": 2, "leading": 2}
)
"""The seed that finds each."""
