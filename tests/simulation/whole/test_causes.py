"""IN-1: whole brokers report the causes that the run knows, and wrong ones are found."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import pytest

from barnabas.broker.controller import event_loop
from barnabas.broker.partitions import role_changes
from barnabas.broker.replication import alter_partition
from barnabas.broker.state_events import IsrUpdate
from barnabas.cluster.controller_requests import LeaderAndIsr
from barnabas.controller import broker_changes
from barnabas.controller.decision import Decision
from barnabas.controller.decision_draft import Draft
from barnabas.coordinator import joining
from barnabas.coordinator.rebalance_log import Cause, RebalanceLog, cause
from barnabas.events import EventLog
from barnabas.replication.follower_state import Lag
from simulation.whole.causes import Reason, reasons_in
from simulation.whole.plan import draw
from simulation.whole.run import run

SEED = 770_000  # has many elections, ISR changes and generations

Plant = Callable[[pytest.MonkeyPatch], None]


def _leader_that_names_another_replica(patch: pytest.MonkeyPatch) -> None:
    """It names another one than the replica that left or joined the ISR."""
    report = alter_partition.report_isrs

    def swapped(events: EventLog, log: Any, updates: Sequence[IsrUpdate]) -> None:
        report(events, log, [each._replace(lags=tuple(map(other, each.lags))) for each in updates])

    def other(lag: Lag) -> Lag:
        return lag._replace(replica=lag.replica % 3 + 1)

    patch.setattr(alter_partition, "report_isrs", swapped)


def _leader_that_reports_nothing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(alter_partition, "report_isrs", lambda events, log, updates: None)


def _controller_that_takes_a_failure_for_a_stop(patch: pytest.MonkeyPatch) -> None:
    words = "broker {} has stopped after its controlled shutdown"
    _explain_losses(patch, lambda broker_id: words.format(broker_id))


def _controller_that_names_another_broker(patch: pytest.MonkeyPatch) -> None:
    words = "broker {} failed: its session ended"
    _explain_losses(patch, lambda broker_id: words.format(broker_id % 3 + 1))


def _explain_losses(patch: pytest.MonkeyPatch, why: Callable[[int], str]) -> None:
    change = broker_changes.brokers_changed

    def explained(draft: Draft, *brokers: Any) -> None:
        draft.losses = {broker_id: why(broker_id) for broker_id in draft.losses}
        change(draft, *brokers)

    patch.setattr(broker_changes, "brokers_changed", explained)


def _controller_that_reports_nothing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(event_loop, "log_changes", lambda events, controller_id, decision: None)


def _controller_that_says_who_asked(patch: pytest.MonkeyPatch) -> None:
    """Whatever the reason is, it says that an administrator asked for it."""
    report = event_loop.log_changes
    why = "an administrator requested an election of preferred leaders"

    def asked(events: EventLog, controller_id: int, decision: Decision) -> None:
        changes = tuple(each._replace(cause=why) for each in decision.changes)
        report(events, controller_id, decision._replace(changes=changes))

    patch.setattr(event_loop, "log_changes", asked)


def _replica_that_states_another_cause(patch: pytest.MonkeyPatch) -> None:
    """It does not repeat what the controller has sent."""
    report = role_changes.report_roles

    def changed(events: EventLog, log: Any, request: LeaderAndIsr, changes: Sequence[Any]) -> None:
        others = [each._replace(cause=each.cause and f"{each.cause}?") for each in changes]
        report(events, log, request, others)

    patch.setattr(role_changes, "report_roles", changed)


def _coordinator_that_takes_who_joins_for_who_left(patch: pytest.MonkeyPatch) -> None:
    def swapped(member: Any, what: str, reason: str | None = None, advice: str = "") -> Cause:
        return cause(member, "came back" if what == "joined" else what, reason, advice)

    patch.setattr(joining, "cause", swapped)


def _coordinator_that_reports_nothing(patch: pytest.MonkeyPatch) -> None:
    add = EventLog.add

    def add_others(self: EventLog, event: Any, log: Any = None) -> None:
        if event.kind != "group-generation":
            add(self, event, log)

    patch.setattr(EventLog, "add", add_others)


def _coordinator_that_names_another_group(patch: pytest.MonkeyPatch) -> None:
    event = RebalanceLog.event

    def another(self: RebalanceLog, group_id: str, ended: Any) -> Any:
        return event(self, group_id, ended)._replace(group="another")

    patch.setattr(RebalanceLog, "event", another)


PLANTED: Mapping[str, tuple[str, Plant]] = MappingProxyType(
    {
        "leader": ("cause", _leader_that_names_another_replica),
        "silent leader": ("reported", _leader_that_reports_nothing),
        "stop": ("cause", _controller_that_takes_a_failure_for_a_stop),
        "another broker": ("cause", _controller_that_names_another_broker),
        "silent controller": ("reported", _controller_that_reports_nothing),
        "administrator": ("cause", _controller_that_says_who_asked),
        "replica": ("cause", _replica_that_states_another_cause),
        "member": ("cause", _coordinator_that_takes_who_joins_for_who_left),
        "silent coordinator": ("reported", _coordinator_that_reports_nothing),
        "another group": ("cause", _coordinator_that_names_another_group),
    }
)


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("kind", PLANTED)
def test_a_wrong_or_missing_cause_is_found(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """IN-1: in a seed that holds without it (below)."""
    rule, plant = PLANTED[kind]
    plant(monkeypatch)
    broken = run(draw(SEED)).broken
    assert any(each.startswith(f"{rule} (") for each in broken), broken


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_true_causes_hold() -> None:
    """IN-1: and both rules have something to judge."""
    outcome = run(draw(SEED))
    assert not outcome.broken, outcome.story
    assert outcome.judged["reported"] > 50 and outcome.judged["cause"] > 50


def test_every_reason_of_a_controller_is_read() -> None:
    """IN-1: also several at once; any other text is not a known cause."""
    assert reasons_in(
        "broker 2 failed: its session ended, broker 3 has stopped after its controlled shutdown, "
        "all target replicas of the reassignment are in sync"
    ) == [Reason("failed", (2,)), Reason("stopped", (3,)), Reason("targets", ())]
    assert reasons_in(
        "controller 1 took over and found brokers 2, 3 not registered; broker 4 may have lost "
        "records"
    ) == [Reason("absent", (2, 3)), Reason("lossy", (4,))]
    assert reasons_in("brokers 1, 2 registered") == [Reason("registered", (1, 2))]
    assert reasons_in("controller 1 took over") == [Reason("took", (1,))]
    assert reasons_in("broker 2 failed: its session ended, and more") is None
    assert reasons_in("broker 2 failed: its session endedbroker 1 registered") is None
    assert reasons_in("") is None
