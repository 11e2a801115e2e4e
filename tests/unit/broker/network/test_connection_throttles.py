"""Events of connections at a limit, over real sockets: their words and their limits (IN-1)."""

from __future__ import annotations

import re
import socket
from contextlib import ExitStack

import pytest

from barnabas import Broker
from barnabas.broker.network.connection_throttles import EVENTS, ConnectionThrottles
from barnabas.broker.quotas.ip_quotas import Excess
from barnabas.client import SyncAdmin
from barnabas.events import Event, EventLog
from barnabas.metrics import Registry
from tests.kit.broker.loops import inside
from tests.kit.broker.metric_pages import samples_of
from tests.kit.processes.reported_events import the_event
from tests.kit.raw_client import PATIENCE_S
from tests.kit.set_clock import SetClock
from tests.kit.waiting import wait_until

OTHER = "127.0.0.2"
"""An address of this machine from which the clients of these tests connect."""


def connect(broker: Broker) -> socket.socket:
    host, port = broker.bootstrap_servers.split(":")
    return socket.create_connection((host, int(port)), PATIENCE_S, source_address=(OTHER, 0))


def about(admin: SyncAdmin, word: str) -> Event:
    return the_event(admin, lambda event: word in event.cause)


def test_in_1_an_address_with_too_many_connections_has_an_event() -> None:
    """IN-1: which address, and which limit; the counter includes every connection."""
    config = {"max.connections.per.ip.overrides": f"{OTHER}:1"}
    with Broker(config=config) as broker, SyncAdmin(broker.bootstrap_servers) as admin:
        with connect(broker), connect(broker) as second, connect(broker) as third:
            assert second.recv(1) == third.recv(1) == b""
        event = about(admin, OTHER)
        assert event.cause == (
            f"{OTHER} already has 1 connections, the limit set by max.connections.per.ip"
        )
        assert re.fullmatch(
            rf"connection refused from {OTHER}:\d+: {re.escape(event.cause)}", event.text
        )
        assert event.kind == "connection-refused" and "max.connections.per.ip" in event.advice
        assert [each.kind for each in admin.events()[0].events].count("connection-refused") == 1
        name = "barnabas_refused_connections_total"
        assert samples_of(broker)[f'{name}{{limit="max.connections.per.ip"}}'] == 2


def test_in_1_an_address_that_connects_too_fast_has_an_event() -> None:
    """IN-1: its limit, and the measured rate."""
    with Broker() as broker, SyncAdmin(broker.bootstrap_servers) as admin, ExitStack() as stack:
        admin.alter_client_quotas({"ip": OTHER}, {"connection_creation_rate": 1})
        for _ in range(15):  # the rate is measured over at least ten seconds
            stack.enter_context(connect(broker))
        event = about(admin, "connection_creation_rate")
        found = re.fullmatch(
            r"connection_creation_rate of the address is 1 connections/s, and the measured rate "
            r"is ([\d.]+) connections/s",
            event.cause,
        )
        assert found is not None and 1 < float(found[1]) < 2
        assert re.fullmatch(
            rf"address {OTHER} is throttled for \d+ ms: {re.escape(event.cause)}", event.text
        )
        assert event.kind == "throttle"


@pytest.mark.parametrize(
    ("limit", "cause"),
    [
        ("max.connections", "max.connections is 3, and 3 connections are open"),
        (
            "max.connection.creation.rate",
            "max.connection.creation.rate is 3 connections/s, and more are waiting",
        ),
    ],
)
def test_in_1_a_listener_at_its_limit_has_an_event(limit: str, cause: str) -> None:
    """IN-1: while connections are waiting."""
    config = {limit: "3"}
    with Broker(config=config) as broker, SyncAdmin(broker.bootstrap_servers) as admin:
        admin.events()  # on the connection that it keeps
        with ExitStack() as stack:
            for _ in range(10):
                stack.enter_context(connect(broker))
            event = about(admin, limit)
        assert event.cause == cause
        assert event.text == f"listener PLAINTEXT leaves connections waiting: {cause}"
        assert event.kind == "throttle" and limit in event.advice


def test_in_1_no_listener_at_its_limit_has_an_event_while_nobody_waits() -> None:
    with Broker(config={"max.connections": "1"}) as broker, connect(broker):
        server = broker.server
        wait_until(lambda: len(server.parts.network.connections) == 1)
        events = inside(broker, lambda: server.events.after(0, 1_000))
        assert not [each for each in events if each.kind == "throttle"]


def test_in_1_addresses_cannot_fill_the_stream() -> None:
    """IN-1: one event a minute for each address and limit, and a limit for all addresses."""
    clock = SetClock()
    events = EventLog(clock.wall_ms, Registry())
    throttles = ConnectionThrottles(events, clock)
    for _ in range(5):
        throttles.on_throttled("10.0.0.7", Excess(2, 3.456), 800)
    assert len(events.after(0, 1_000)) == 1
    for number in range(1_000):
        throttles.on_refused((f"10.1.{number // 250}.{number % 250}", 1), "limit", "cause")
    assert len(events.after(0, 2_000)) == EVENTS
    clock.at_ms += 60_000
    throttles.on_throttled("10.0.0.7", Excess(2, 3.456), 800)
    others, again = events.after(0, 2_000)[EVENTS:]
    left_out = 1_001 - EVENTS
    assert others.text == f"connections were kept out {left_out:,} more times without an event"
    assert again.text == (
        "address 10.0.0.7 is throttled for 800 ms: connection_creation_rate of the address is 2 "
        "connections/s, and the measured rate is 3.46 connections/s (4 more times before)"
    )
