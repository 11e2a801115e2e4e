"""Connections at their limits, over real sockets: refused, left waiting, closed when idle."""

from __future__ import annotations

import socket
import time

import pytest

from barnabas import Broker
from barnabas.protocol.api import API_VERSIONS, FETCH
from barnabas.protocol.messages.api_versions import ApiVersionsRequest
from barnabas.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from tests.raw_client import RawClient
from tests.unit.broker.conftest import create


def is_answered(client: RawClient, within_s: float = 5.0) -> bool:
    """Whether ApiVersions is answered in time."""
    client.send(API_VERSIONS, 0, ApiVersionsRequest())
    client.socket.settimeout(within_s)
    try:
        client.receive(API_VERSIONS, 0)
    except (TimeoutError, ConnectionError):
        return False
    finally:
        client.socket.settimeout(10)
    return True


def test_an_address_at_its_limit_is_refused_at_once() -> None:
    """UX-4"""
    with Broker(config={"max.connections.per.ip": "1"}) as broker:
        with RawClient(broker.bootstrap_servers) as first:
            assert is_answered(first)
            with RawClient(broker.bootstrap_servers) as second:
                assert second.is_closed_by_peer()
            assert is_answered(first)
        for _ in range(100):  # the broker learns of the closing by itself
            with RawClient(broker.bootstrap_servers) as third:
                if not third.is_closed_by_peer(within_s=0.2):
                    return
        raise AssertionError("the place of a closed connection was not given back")


def test_at_max_connections_the_next_one_waits_for_a_place() -> None:
    with Broker(config={"max.connections": "1"}) as broker:
        first = RawClient(broker.bootstrap_servers)
        assert is_answered(first)
        with RawClient(broker.bootstrap_servers) as second:
            assert not is_answered(second, within_s=0.3), "it is in the backlog"
            first.close()
            second.receive(API_VERSIONS, 0)


def test_an_idle_connection_is_closed_and_a_busy_one_is_not() -> None:
    with (
        Broker(config={"connections.max.idle.ms": "800"}) as broker,
        RawClient(broker.bootstrap_servers) as idle,
        RawClient(broker.bootstrap_servers) as busy,
    ):
        assert is_answered(idle)
        deadline = time.monotonic() + 3
        closed = False
        while time.monotonic() < deadline and not closed:
            assert is_answered(busy)
            closed = idle.is_closed_by_peer(within_s=0.1)
        assert closed
        assert is_answered(busy)


@pytest.mark.slow
def test_one_that_waits_for_its_answer_is_not_idle() -> None:
    with (
        Broker(config={"connections.max.idle.ms": "400"}) as broker,
        RawClient(broker.bootstrap_servers) as client,
    ):
        create(client, "quiet")
        wanted = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)
        request = FetchRequest(
            max_wait_ms=1500,
            min_bytes=1,
            max_bytes=1000,
            topics=[FetchTopic(topic="quiet", partitions=[wanted])],
        )
        assert client.call(FETCH, 11, request).responses[0].partitions[0].error_code == 0


@pytest.mark.parametrize("count", [40])
def test_many_connections_at_once_are_all_accepted(count: int) -> None:
    with Broker() as broker:
        host, port = broker.bootstrap_servers.split(":")
        sockets = [socket.create_connection((host, int(port)), 5) for _ in range(count)]
        try:
            with RawClient(broker.bootstrap_servers) as last:
                assert is_answered(last)
            assert broker._server is not None
            assert len(broker._server._routers[0]._channels) >= count
        finally:
            for each in sockets:
                each.close()
