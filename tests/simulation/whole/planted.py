"""Bugs to be found in whole brokers: each takes one guard away, or makes one mistake."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import pytest

from barnabas.controller.controller import Controller
from barnabas.coordinator.transactions import Transactions
from barnabas.replication.follower import Append, Follower
from barnabas.replication.partition import Advance, Partition
from barnabas.storage.log import Log

Plant = Callable[[pytest.MonkeyPatch], None]


def _leader_that_waits_for_nobody(patch: pytest.MonkeyPatch) -> None:
    """Its high watermark is its own log's end (RE-5)."""

    def advance(self: Partition) -> list[Any]:
        if self.log_end_offset <= self.high_watermark:
            return []
        self.high_watermark = self.log_end_offset
        return [Advance(self.log_end_offset)]

    patch.setattr(Partition, "_advance", advance)


def _follower_that_cuts_nothing(patch: pytest.MonkeyPatch) -> None:
    """It does not look where its leader says that its log is another one (KIP-101)."""
    answered = Follower.answered

    def careless(self: Follower, sent: Any, got: Any) -> Any:
        step = answered(self, sent, got._replace(diverging=None))
        return step if got.diverging is None else Append()

    patch.setattr(Follower, "answered", careless)


def _controller_that_trusts(patch: pytest.MonkeyPatch) -> None:
    """It believes the ISR of brokers that may have lost records (KIP-966)."""
    changed = Controller.brokers_changed

    def trusting(self: Controller, live: Any) -> Any:
        whole = {each: broker._replace(may_have_lost=False) for each, broker in live.items()}
        return changed(self, whole)

    patch.setattr(Controller, "brokers_changed", trusting)


def _log_that_forgets_what_was_aborted(patch: pytest.MonkeyPatch) -> None:
    """Readers of committed records are told of no aborted transaction (CO-6)."""
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
        "leader": _leader_that_waits_for_nobody,
        "follower": _follower_that_cuts_nothing,
        "controller": _controller_that_trusts,
        "log": _log_that_forgets_what_was_aborted,
        "coordinator": _coordinator_that_always_commits,
    }
)
