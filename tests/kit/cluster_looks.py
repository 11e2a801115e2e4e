"""Builds what a console has seen of a cluster, without one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from barnabas.client.admin.admin import BrokerDescription, ClusterDescription, TopicDescription
from barnabas.client.admin.event_admin import BrokerEvents
from barnabas.client.view import PartitionView
from barnabas.console.event_book import EventBook
from barnabas.console.findings import Known
from barnabas.console.snapshot import NO_DISKS, NO_GROUPS, NO_TRANSACTIONS, ClusterLook
from barnabas.events import Event
from barnabas.types import TopicPartition


def topic(name: str, *partitions: tuple[int, Sequence[int], Sequence[int]]) -> TopicDescription:
    """A topic of partitions with these leaders, replicas and ISRs."""
    views = [
        PartitionView(number, leader, 3, tuple(replicas), tuple(isr), ())
        for number, (leader, replicas, isr) in enumerate(partitions)
    ]
    return TopicDescription(name, bytes(16), name.startswith("__"), tuple(views))


def look(
    *topics: TopicDescription,
    brokers: Sequence[int] = (1, 2, 3),
    controller: int = 1,
    ends: Mapping[TopicPartition, int] | None = None,
) -> ClusterLook:
    """A look at these topics; all logs begin at 0."""
    rows = tuple(BrokerDescription(each, "127.0.0.1", 9_000 + each, None) for each in brokers)
    known = ends or {}
    return ClusterLook(
        1_000,
        ClusterDescription("cluster", controller, rows),
        {each.name: each for each in topics},
        known,
        dict.fromkeys(known, 0),
    )


def known(seen: ClusterLook, *events: Event) -> Known:
    """A look, and events that broker 1 has reported."""
    return Known(seen, NO_DISKS, NO_GROUPS, NO_TRANSACTIONS, book(*events))


def book(*events: Event, reporter: int = 1) -> EventBook:
    """The events of one broker, one ms apart and with ascending numbers."""
    found = EventBook()
    stamped = [each._replace(at_ms=n, sequence=n) for n, each in enumerate(events, 1)]
    found.add({reporter: BrokerEvents(reporter, tuple(stamped), len(stamped))})
    return found
