"""Limits on connections: who is refused, who has to wait, and for how long."""

from __future__ import annotations

from barnabas.broker.network.connections import UNTIL_ONE_CLOSES
from barnabas.config import BrokerConfig
from tests.kit.broker.connections import FakeClock, limited


def test_without_limits_no_connection_waits_or_is_refused() -> None:
    connections = limited()
    for _ in range(1000):
        assert connections.wait_ms("PLAINTEXT") == 0
        assert connections.refusal("127.0.0.1") is None
        connections.on_opened("PLAINTEXT", "127.0.0.1")
    assert len(connections) == 1000


def test_an_address_gets_no_more_than_its_limit_and_others_theirs() -> None:
    connections = limited(
        max_connections_per_ip="2", **{"max.connections.per.ip.overrides": "10.0.0.9:0,0:0::1:1"}
    )
    for _ in range(2):
        connections.on_opened("PLAINTEXT", "10.0.0.1")
    refusal = connections.refusal("10.0.0.1")
    assert refusal is not None
    assert "10.0.0.1 already has 2 connections" in refusal
    assert connections.refusal("10.0.0.2") is None
    assert connections.refusal("10.0.0.9") is not None
    assert connections.refusal("::1") is None
    connections.on_closed("PLAINTEXT", "10.0.0.1")
    assert connections.refusal("10.0.0.1") is None


def test_at_the_limit_of_all_a_listener_waits_until_one_closes() -> None:
    connections = limited(max_connections="1")
    freed: list[int] = []
    connections.add_listener(lambda: freed.append(len(connections)))
    connections.on_opened("A", "10.0.0.1")
    assert connections.wait_ms("B") == UNTIL_ONE_CLOSES
    connections.on_closed("A", "10.0.0.1")
    assert freed == [0]
    assert connections.wait_ms("B") == 0


def test_a_listener_has_a_limit_of_its_own() -> None:
    connections = limited(**{"listener.name.a.max.connections": "1"})
    connections.on_opened("A", "10.0.0.1")
    assert connections.wait_ms("A") == UNTIL_ONE_CLOSES
    assert connections.wait_ms("B") == 0


def test_connections_come_no_faster_than_the_rate() -> None:
    """KIP-612."""
    clock = FakeClock()
    connections = limited(clock, **{"max.connection.creation.rate": "10"})
    accepted = 0
    for _ in range(3000):
        while connections.wait_ms("A") == 0:
            connections.on_opened("A", "10.0.0.1")
            accepted += 1
        clock.at_ms += 1
    assert 39 <= accepted <= 41, "ten a second for three seconds, and a second's worth saved up"


def test_new_limits_hold_at_once() -> None:
    connections = limited()
    freed: list[bool] = []
    connections.add_listener(lambda: freed.append(True))
    connections.on_opened("A", "10.0.0.1")
    connections.configure(BrokerConfig({"max.connections": "1"}))
    assert connections.wait_ms("A") == UNTIL_ONE_CLOSES
    assert freed == [True]
