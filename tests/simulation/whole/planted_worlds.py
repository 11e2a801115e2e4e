"""Bugs that one kind of fault finds and no other: each is seen by what it does to a broker."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import pytest

from barnabas.coordinator.decision import Decision
from barnabas.coordinator.groups import Groups
from barnabas.net.connection import Connection
from barnabas.protocol.api import CREATE_TOPICS, DELETE_TOPICS
from barnabas.protocol.messages.heartbeat import HeartbeatRequest
from barnabas.storage.directory import LogDirectory
from simulation.options import Fault
from simulation.whole.plan import DRILLS, HUNG, PAUSED_FOLLOWER, PIPELINED, REPLACED, UNREAD, Plan
from simulation.whole.pulse import SimPulse
from tests.simulation.whole.planted import Plant


def _disk_that_is_not_watched(patch: pytest.MonkeyPatch) -> None:
    """A hang is no error, so the broker keeps its session and leads on (ST-10)."""
    patch.setattr(SimPulse, "tick", lambda self: False)


def _heartbeat_that_waits_for_followers(patch: pytest.MonkeyPatch) -> None:
    """It is answered when the offsets partition has replicated all before it (GC-3)."""
    heartbeat = Groups.heartbeat

    def late(self: Groups, ticket: int, request: HeartbeatRequest, now_ms: int) -> Decision:
        decision = heartbeat(self, ticket, request, now_ms)
        replies = tuple(reply._replace(after=None) for reply in decision.replies)
        return decision._replace(replies=replies)

    patch.setattr(Groups, "heartbeat", late)


def _new_disk_that_is_believed(patch: pytest.MonkeyPatch) -> None:
    """Nothing is on it, so nothing can be lost of it (KIP-966)."""
    may_have_lost = LogDirectory.may_have_lost

    def believed(self: LogDirectory, boot_id: bytes) -> bool:
        names = {entry.name for entry in self._files.list(self.path)}
        return ".barnabas_boot" in names and may_have_lost(self, boot_id)

    patch.setattr(LogDirectory, "may_have_lost", believed)


def _requests_that_overtake(patch: pytest.MonkeyPatch) -> None:
    """Those of one connection are carried out side by side; only their answers keep an order."""
    for api in (CREATE_TOPICS, DELETE_TOPICS):
        patch.setattr(api, "overlaps", True)


def _answers_without_bound(patch: pytest.MonkeyPatch) -> None:
    """Requests are taken in however much of what was answered is still here."""

    def on_blocked(self: Connection) -> None:
        pass

    patch.setattr(Connection, "on_blocked", on_blocked)


WORLDS: Mapping[str, Plant] = MappingProxyType(
    {
        PIPELINED: _requests_that_overtake,
        UNREAD: _answers_without_bound,
        HUNG: _disk_that_is_not_watched,
        PAUSED_FOLLOWER: _heartbeat_that_waits_for_followers,
        REPLACED: _new_disk_that_is_believed,
    }
)

_CALM = Plan(5, faults_end_at_ms=4_000, has_keyed=True)
# Sessions are long, so that a heartbeat which waits does so for longer than is allowed.
_PATIENT = Plan(5, lag_time_max_ms=4_000, session_timeout_ms=3_000, faults_end_at_ms=4_000)

FOUND_BY: Mapping[str, Plan] = MappingProxyType(
    {
        kind: _CALM._replace(faults=(Fault(2_000, kind, 1, 2, 1_000),))
        for kind in (PIPELINED, UNREAD)
    }
    | {
        kind: (_PATIENT if kind == PAUSED_FOLLOWER else _CALM)._replace(
            drills=(Fault(0, kind, 1, 0, 50),)
        )
        for kind in DRILLS
    }
)
"""The plan that finds each: nothing else befalls the cluster."""
