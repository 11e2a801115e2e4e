"""Adds events about leaders, followers and ISRs, and logs them (`state_changes`). Each partition
has its own event, even if many partitions share a line in the log.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from barnabas.broker.state_changes import (
    RoleChange,
    role_line,
    role_lines,
    update_line,
    update_lines,
)
from barnabas.cluster.controller_requests import LONGEST_CAUSE
from barnabas.counted import counted
from barnabas.events import Event
from barnabas.named_tuple import NamedTuple
from barnabas.printable import printable_within

if TYPE_CHECKING:
    import logging

    from barnabas.cluster.controller_requests import IsrAnswer, LeaderAndIsr
    from barnabas.events import EventLog, Kind
    from barnabas.replication.follower_state import Lag
    from barnabas.replication.partition import Partition

T = TypeVar("T")

MOST_EVENTS = 250
"""The maximum number of partitions in one decision that get their own events."""


class IsrUpdate(NamedTuple):
    """An ISR change that has been accepted, with the replicas that the leader proposed to add or
    remove.
    """

    partition: Partition
    answer: IsrAnswer
    lags: tuple[Lag, ...]


def report_roles(
    events: EventLog, log: logging.Logger, request: LeaderAndIsr, changes: Sequence[RoleChange]
) -> None:
    """Report the replicas that this broker now leads or follows, with the causes given by the
    controller.
    """
    if not changes:
        return
    lines = role_lines(changes[0].partition.broker_id, changes)
    decided = f"controller {request.controller_id} decided it in epoch {request.controller_epoch}"
    report(events, log, lines, changes, partial(_role_event, decided))


def report_isrs(events: EventLog, log: logging.Logger, updates: Sequence[IsrUpdate]) -> None:
    """Report the ISR changes that the controller has accepted."""
    lines = update_lines([(each.partition, each.answer) for each in updates])
    report(events, log, lines, updates, _isr_event)


def report(
    events: EventLog,
    log: logging.Logger,
    lines: Iterable[str],
    items: Sequence[T],
    event_of: Callable[[T], Event],
) -> None:
    """Log the lines about the items of a single decision, and add events with the same content."""
    for line in lines:
        log.info("%s", line)
    # A decision about ten thousand partitions must neither displace all other events nor block the
    # event loop for long.
    for item in items[:MOST_EVENTS]:
        events.add(event_of(item))
    left = len(items) - MOST_EVENTS
    if left > 0:
        kind = event_of(items[MOST_EVENTS]).kind
        text = f"and {left} more; see the broker's log"
        # The other items may have different causes.
        events.add(Event(kind, text, f"a decision has at most {MOST_EVENTS} events of its own"))


def _role_event(decided: str, change: RoleChange) -> Event:
    partition = change.partition
    # Kafka's controller does not state a cause, and text that comes from a request cannot be
    # trusted.
    why = printable_within(change.cause, LONGEST_CAUSE)
    return Event(
        "leader" if partition.is_leader else "follower",
        role_line(change),
        f"{decided}: {why}" if why else decided,
        partition.topic_partition.topic,
        partition.topic_partition.partition,
        broker=partition.broker_id,
    )


def _isr_event(update: IsrUpdate) -> Event:
    partition, answer, lags = update
    left = [each for each in lags if each.replica not in answer.isr]
    if not left:
        why = ", ".join(f"broker {each.replica} has caught up" for each in lags)
        return _isr_change("isr-expand", update, why)
    why = ", ".join(map(_why_removed, left))
    brokers = ", ".join(f"broker {each.replica}" for each in left)
    advice = f"check whether {brokers} is running, and check its disk and network"
    if not partition.has_enough_in_sync():
        advice += "; until then, records with acks=all are rejected"
    event = _isr_change("isr-shrink", update, why)
    return event._replace(
        broker=left[0].replica, is_harmless=partition.has_enough_in_sync(), advice=advice
    )


def _isr_change(kind: Kind, update: IsrUpdate, why: str) -> Event:
    name = update.partition.topic_partition
    broker = update.lags[0].replica if update.lags else -1
    line = update_line(update.partition, update.answer)
    return Event(kind, line, why, name.topic, name.partition, broker=broker, is_harmless=True)


def _why_removed(lag: Lag) -> str:
    who = f"broker {lag.replica}"
    if lag.records < 0:
        return f"{who} has not fetched in this leader epoch"
    behind = f"{who} is {counted(lag.records, 'record')} behind"
    if lag.behind_ms < 0:
        return f"{behind} and has never had all records in this leader epoch"
    return (
        f"{behind} and last had all records {lag.behind_ms} ms ago"
        f" (replica.lag.time.max.ms is {lag.allowed_ms})"
    )
