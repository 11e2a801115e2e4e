"""IN-6: events are attributed to a client by the words of the brokers' own texts."""

from __future__ import annotations

import pytest

from barnabas.broker.network.connection_throttles import ConnectionThrottles
from barnabas.broker.network.failed_logins import FailedLogin, FailedLogins
from barnabas.client.admin.event_admin import BrokerEvents
from barnabas.console.client_events import ClientEvents, Named, named_in
from barnabas.console.event_book import EventBook, event_row
from barnabas.events import Event, EventLog
from barnabas.metrics import Registry
from tests.kit.set_clock import SetClock

CAUSE = "producer_byte_rate is 10 bytes/s, and the measured rate is 20.50 bytes/s"
DENIAL = "no rule is about topic 'x', and allow.everyone.if.no.acl.found is false"
ENDS = "after 1,200 throttled requests in 5 ms, the longest for 3 ms"
LIAR = f"victim is throttled for 5 ms: {CAUSE}"
TRICK = "a from host 10.0.0.9 for Fetch: no"


@pytest.mark.parametrize(
    ("event", "named"),
    [
        (Event("throttle", f"client-id web is throttled for 5 ms: {CAUSE}", CAUSE), Named("web")),
        (
            Event("throttle", f"user a, client-id b, c is throttled for 5 ms: {CAUSE}", CAUSE),
            Named("b, c"),
        ),
        (
            Event(
                "throttle", f"x is no longer throttled by request_percentage {ENDS}: {CAUSE}", CAUSE
            ),
            Named(),
        ),
        (
            Event(
                "throttle",
                f"client-id x is no longer throttled by request_percentage {ENDS}: {CAUSE}",
                CAUSE,
            ),
            Named("x"),
        ),
        (
            Event("throttle", f"client-id {LIAR} is throttled for 5 ms: {CAUSE}", CAUSE),
            Named(LIAR),
        ),
        (
            Event(
                "authentication-failed",
                "failed authentication from 10.0.0.7:5: no [listener IN, client-id x: no "
                "[listener IN, client-id victim]",
                "no",
            ),
            Named(),
        ),
        (Event("throttle", f"user web is throttled for 5 ms: {CAUSE}", CAUSE), Named()),
        (
            Event(
                "access-denied",
                f"User:{TRICK} is denied Read on topic 'x' from host 10.0.0.7 for Fetch: {DENIAL} "
                "(3 more denials since the last event)",
                DENIAL,
            ),
            Named("", "10.0.0.7"),
        ),
        (Event("access-denied", "5 further denials without an event of their own", "few"), Named()),
    ],
)
def test_in_6_a_client_is_found_in_the_text_of_an_event(event: Event, named: Named) -> None:
    assert named_in(event_row(1, event)) == named


def test_in_6_the_brokers_write_the_texts_that_are_expected() -> None:
    clock = SetClock()
    log = EventLog(clock.wall_ms, Registry())
    logins, connections = FailedLogins(log, clock), ConnectionThrottles(log, clock)
    address = ("10.0.0.7", 5123)
    logins.add(FailedLogin("IN", address, "wrong: no", mechanism="PLAIN", client_id="web, x]"))
    logins.add(FailedLogin("TLS", ("::1", 1), "an old certificate", is_tls=True))
    connections.on_refused(address, "max.connections.per.ip", "it has 10 connections")
    names = [named_in(event_row(1, event)) for event in log.after(0, 10)]
    assert names == [
        Named("web, x]", "10.0.0.7"),
        Named("", "0:0:0:0:0:0:0:1"),
        Named("", "10.0.0.7"),
    ]


def test_in_6_a_stranger_with_the_same_client_id_is_another_client() -> None:
    clock = SetClock()
    log = EventLog(clock.wall_ms, Registry())
    logins = FailedLogins(log, clock)
    logins.add(FailedLogin("IN", ("10.0.0.7", 1), "wrong", client_id="web"))
    logins.add(FailedLogin("IN", ("10.0.0.8", 1), "wrong"))
    book = EventBook()
    book.add({1: BrokerEvents(1, tuple(log.after(0, 10)))})
    events = ClientEvents(book)
    count, last = events.of("web", "/10.0.0.7")
    assert (count, last and last["is_by_host"]) == (1, False)
    count, last = events.of("web", "/10.0.0.8")
    assert (count, last and last["is_by_host"]) == (1, True)
    assert events.of("web", "/10.0.0.9") == (0, None)
