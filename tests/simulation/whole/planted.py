"""Bugs to be found in whole brokers: each takes one guard away, or makes one mistake."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import pytest

from barnabas.cluster.image import PartitionImage
from barnabas.controller import broker_changes, decision_draft
from barnabas.controller.leader_election import elect
from barnabas.coordinator.transactions import Transactions
from barnabas.replication.follower import Follower
from barnabas.replication.partition import Advance, Partition
from barnabas.storage.log import Log

Plant = Callable[[pytest.MonkeyPatch], None]


def _leader_that_waits_for_no_follower(patch: pytest.MonkeyPatch) -> None:
    """Its high watermark is its own log's end (RE-5)."""

    def advance(self: Partition) -> list[Any]:
        if self.log_end_offset <= self.high_watermark:
            return []
        self.high_watermark = self.log_end_offset
        return [Advance(self.log_end_offset)]

    patch.setattr(Partition, "_advance", advance)


def _follower_that_names_no_epoch(patch: pytest.MonkeyPatch) -> None:
    """Its leader cannot see that their logs part, so nothing is cut (KIP-101)."""
    fetch_from = Follower.fetch_from

    def nameless(self: Follower) -> Any:
        return fetch_from(self)._replace(last_fetched_epoch=-1)

    patch.setattr(Follower, "fetch_from", nameless)


def _controller_that_takes_anyone(patch: pytest.MonkeyPatch) -> None:
    """It elects any live replica, in sync or not, and says that all of them are in sync (RE-10)."""

    def anyone(partition: PartitionImage, live: Any, controller_epoch: int) -> Any:
        return elect(partition._replace(isr=partition.replicas), live, controller_epoch)

    for module in (decision_draft, broker_changes):
        patch.setattr(module, "elect", anyone)


def _log_that_forgets_what_was_aborted(patch: pytest.MonkeyPatch) -> None:
    """Readers of committed records learn of no aborted transaction (CO-6)."""
    patch.setattr(Log, "aborted_transactions", lambda self, fetch_offset, end_offset: [])


def _coordinator_that_always_commits(patch: pytest.MonkeyPatch) -> None:
    """An abort is a commit to it (PR-7)."""
    end = Transactions.end

    def commits(self: Transactions, ticket: int, request: Any, version: int, now_ms: int) -> Any:
        request.committed = True
        return end(self, ticket, request, version, now_ms)

    patch.setattr(Transactions, "end", commits)


PLANTED: Mapping[str, Plant] = MappingProxyType(
    {
        "leader": _leader_that_waits_for_no_follower,
        "follower": _follower_that_names_no_epoch,
        "controller": _controller_that_takes_anyone,
        "log": _log_that_forgets_what_was_aborted,
        "coordinator": _coordinator_that_always_commits,
    }
)

FOUND_FIRST_BY: Mapping[str, int] = MappingProxyType({"controller": 3, "follower": 1, "leader": 6})
"""The seed that finds each, if it is not the first; any change of the broker may make it another.
"""
