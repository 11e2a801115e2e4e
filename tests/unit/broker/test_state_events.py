"""IN-1: the events of roles and ISRs, with causes from the machines that decided."""

from __future__ import annotations

import logging

import pytest

from barnabas.broker.state_changes import RoleChange
from barnabas.broker.state_events import (
    MOST_EVENTS,
    IsrUpdate,
    report,
    report_isrs,
    report_roles,
)
from barnabas.cluster.controller_requests import LONGEST_CAUSE, IsrAnswer, LeaderAndIsr
from barnabas.cluster.image import PartitionImage
from barnabas.events import Event, EventLog
from barnabas.metrics import Registry
from barnabas.replication.follower_state import Lag
from barnabas.replication.partition import Partition
from barnabas.types import TopicPartition

LOG = logging.getLogger("t")
ALLOWED_MS = 30_000


def _leader(isr: tuple[int, ...], min_insync: int = 1) -> Partition:
    partition = Partition(TopicPartition("t", 3), 1, min_insync_replicas=min_insync)
    partition.become_leader(PartitionImage(1, 4, isr, (1, 2, 3), 7, 1), 10)
    return partition


def _reported(update: IsrUpdate) -> Event:
    log = EventLog(lambda: 0, Registry())
    report_isrs(log, LOG, [update])
    (event,) = log.after(0, 10)
    return event


def _roles(*changes: RoleChange) -> list[Event]:
    log = EventLog(lambda: 0, Registry())
    report_roles(log, LOG, LeaderAndIsr(3, 9, ()), changes)
    return log.after(0, 1_000)


def test_a_role_has_the_controllers_reason() -> None:
    """IN-1: each partition its own, made safe for a line; a controller of Kafka says none."""
    led = PartitionImage(1, 4, (1, 2), (1, 2, 3), 7, 1)
    leader, follower = _leader((1, 2)), Partition(TopicPartition("u", 0), 1, min_insync_replicas=1)
    follower.become_follower(led._replace(leader=2))
    hostile = "two\nlines \x1b[2J" + "x" * LONGEST_CAUSE
    events = _roles(
        RoleChange(leader, led, 0, 2, 3, "broker 2 failed: its session ended"),
        RoleChange(follower, led, 0, 1, 3, hostile),
        RoleChange(follower, led, 0, 1, 3),
    )
    said = "controller 3 decided it in epoch 9"
    assert [each.kind for each in events] == ["leader", "follower", "follower"]
    assert events[0].cause == f"{said}: broker 2 failed: its session ended"
    assert events[1].cause.startswith(f"{said}: two\\nlines \\x1b[2Jxxx")
    assert len(events[1].cause) == len(said) + 2 + LONGEST_CAUSE
    assert events[2].cause == said


def test_many_roles_claim_no_common_reason() -> None:
    """IN-1: what the last event sums up may have other causes."""
    led = PartitionImage(1, 4, (1, 2), (1, 2, 3), 7, 1)
    partition = _leader((1, 2))
    changes = [RoleChange(partition, led, 0, 2, 3, f"{each}") for each in range(MOST_EVENTS + 2)]
    last = _roles(*changes)[-1]
    assert last.text == "and 2 more; see the broker's log"
    assert last.cause == f"a decision has at most {MOST_EVENTS} events of its own"


def test_a_shrink_says_who_was_how_far_behind() -> None:
    """IN-1: harmless as long as acks=all is accepted."""
    partition = _leader((1, 2))
    answer = IsrAnswer(0, 1, 4, (1, 2), 8)
    event = _reported(IsrUpdate(partition, answer, (Lag(3, 523, 30_012, ALLOWED_MS),)))
    assert event.cause == (
        "broker 3 is 523 records behind and last had all records 30012 ms ago "
        "(replica.lag.time.max.ms is 30000)"
    )
    assert event.text == "[Partition t-3 broker=1] ISR updated to 1,2 and version updated to 8"
    assert (event.kind, event.topic, event.partition, event.broker) == ("isr-shrink", "t", 3, 3)
    assert event.is_harmless is True


def test_a_shrink_below_the_minimum_harms_producers() -> None:
    """IN-1: the advice names what is rejected."""
    partition = _leader((1,), min_insync=2)
    answer = IsrAnswer(0, 1, 4, (1,), 8)
    event = _reported(IsrUpdate(partition, answer, (Lag(2, -1, -1, ALLOWED_MS),)))
    assert event.cause == "broker 2 has not fetched in this leader epoch"
    assert event.is_harmless is False
    assert "acks=all are rejected" in event.advice


def test_an_expansion_says_who_has_caught_up() -> None:
    """IN-1: this never harms anybody."""
    partition = _leader((1, 2, 3))
    answer = IsrAnswer(0, 1, 4, (1, 2, 3), 8)
    event = _reported(IsrUpdate(partition, answer, (Lag(3, 0, 0, ALLOWED_MS),)))
    assert (event.kind, event.cause) == ("isr-expand", "broker 3 has caught up")


def test_a_large_decision_does_not_fill_the_log(caplog: pytest.LogCaptureFixture) -> None:
    """IN-1: the last event says how many more there were."""
    log = EventLog(lambda: 0, Registry())
    numbers = range(MOST_EVENTS + 5)
    with caplog.at_level(logging.INFO):
        report(log, LOG, ["one line"], numbers, lambda each: Event("kind", str(each), "why"))
    assert caplog.messages == ["one line"]
    events = log.after(0, 1_000)
    assert len(events) == MOST_EVENTS + 1
    assert events[-1].text == "and 5 more; see the broker's log"
