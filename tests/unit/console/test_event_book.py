"""Events of all brokers, selected and bounded."""

from __future__ import annotations

import pytest

from barnabas.client.admin.event_admin import BrokerEvents
from barnabas.console.event_book import KEPT, EventBook, EventFilter
from barnabas.console.shapes import Events
from barnabas.events import Event
from tests.kit.cluster_looks import book
from tests.kit.shapes import misfits

EVENTS = (
    Event("election", "elected", topic="t", partition=0, broker=2),
    Event("leader", "leads", topic="t", partition=0),
    Event("group-generation", "rebalanced", group="g"),
)


@pytest.mark.parametrize(
    ("wanted", "kinds"),
    [
        (EventFilter(), ["group-generation", "election"]),
        (EventFilter(with_routine=True), ["group-generation", "leader", "election"]),
        (EventFilter(kind="leader"), ["leader"]),
        (EventFilter(topic="t"), ["election"]),
        (EventFilter(group="g"), ["group-generation"]),
        (EventFilter(broker=2), ["election"]),
        (EventFilter(broker=1), ["group-generation", "election"]),
        (EventFilter(since_ms=3), ["group-generation"]),
    ],
)
def test_events_are_selected_the_latest_first(wanted: EventFilter, kinds: list[str]) -> None:
    found = book(*EVENTS).shape(wanted, 10)
    assert list(misfits(found, Events)) == []
    assert [row["kind"] for row in found["events"]] == kinds


def test_a_stream_gets_each_event_once() -> None:
    events = book(*EVENTS)
    last = events.last
    assert events.newer(last, EventFilter()) == []
    assert events.add({1: BrokerEvents(1, (EVENTS[0],), 4)})
    assert [(at, row["kind"]) for at, row in events.newer(last, EventFilter())] == [
        (last + 1, "election")
    ]
    assert not events.add({1: BrokerEvents(1, (), 4)})


def test_only_the_last_events_are_kept() -> None:
    events = book(*(EVENTS[:1] * (KEPT + 10)))
    assert len(events.latest(EventFilter(), 2 * KEPT)) == KEPT
    assert events.latest(EventFilter(), 1)[0]["sequence"] == KEPT + 10


def test_brokers_that_keep_no_events_are_silent() -> None:
    events = EventBook()
    reports = {
        1: BrokerEvents(1, EVENTS, 3),
        2: BrokerEvents(2, problem="broker 2 reports no events: it is not a Barnabas broker"),
    }
    events.add(reports)
    assert (events.silent, events.after) == ([2], {1: 3, 2: 0})
