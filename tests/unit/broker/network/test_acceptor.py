"""Connections at their limits, over real sockets: refused, left waiting, closed when idle."""

from __future__ import annotations

import socket
import time

import pytest

from barnabas import Broker
from barnabas.protocol.api import API_VERSIONS, FETCH
from barnabas.protocol.messages.api_versions import ApiVersionsRequest
from barnabas.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from tests.kit.broker.topics import create
from tests.kit.raw_client import PATIENCE_S, RawClient
from tests.kit.waiting import wait_until


def is_answered(client: RawClient, within_s: float = PATIENCE_S) -> bool:
    """Whether ApiVersions is answered in time."""
    client.socket.settimeout(within_s)
    try:
        client.send(API_VERSIONS, 0, ApiVersionsRequest())
        return client.receive_frame() != b""
    except (TimeoutError, ConnectionError):
        return False
    finally:
        client.socket.settimeout(PATIENCE_S)


def test_an_address_at_its_limit_is_refused_at_once() -> None:
    """UX-4"""
    with Broker(config={"max.connections.per.ip": "1"}) as broker:
        with RawClient(broker.bootstrap_servers) as first:
            assert is_answered(first)
            with RawClient(broker.bootstrap_servers) as second:
                assert second.is_closed_by_peer()
            assert is_answered(first)

        def has_a_place() -> bool:
            with RawClient(broker.bootstrap_servers) as third:
                return is_answered(third)

        wait_until(has_a_place)  # the broker learns of the closing by itself


def test_at_max_connections_the_next_one_waits_for_a_place() -> None:
    with Broker(config={"max.connections": "1"}) as broker:
        first = RawClient(broker.bootstrap_servers)
        assert is_answered(first)
        with RawClient(broker.bootstrap_servers) as second:
            assert not is_answered(second, within_s=0.3), "it is in the backlog"
            first.close()
            second.receive(API_VERSIONS, 0)


def test_an_idle_connection_is_closed_and_a_busy_one_is_not() -> None:
    idle_s = 0.8
    with (
        Broker(config={"connections.max.idle.ms": "800"}) as broker,
        RawClient(broker.bootstrap_servers) as idle,
    ):
        assert is_answered(idle)
        ends_at = time.monotonic() + PATIENCE_S
        busy = RawClient(broker.bootstrap_servers)
        opened_at = asked_at = time.monotonic()
        is_closed = False
        while not is_closed or time.monotonic() - opened_at < 1.5 * idle_s:
            assert time.monotonic() < ends_at
            before, asked_at = asked_at, time.monotonic()
            if not is_answered(busy):
                assert time.monotonic() - before > idle_s, "it was not idle for so long"
                busy.close()  # the test was too slow to keep it busy
                busy = RawClient(broker.bootstrap_servers)
                opened_at = asked_at = time.monotonic()
            is_closed = is_closed or idle.is_closed_by_peer(within_s=0.1)
        busy.close()


@pytest.mark.slow
def test_one_that_waits_for_its_answer_is_not_idle() -> None:
    with (
        Broker(config={"connections.max.idle.ms": "2500"}) as broker,
        RawClient(broker.bootstrap_servers) as client,
    ):
        create(client, "quiet")
        wanted = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)
        request = FetchRequest(
            max_wait_ms=6000,
            min_bytes=1,
            max_bytes=1000,
            topics=[FetchTopic(topic="quiet", partitions=[wanted])],
        )
        assert client.call(FETCH, 11, request).responses[0].partitions[0].error_code == 0


@pytest.mark.parametrize("count", [40])
def test_many_connections_at_once_are_all_accepted(count: int) -> None:
    with Broker() as broker:
        host, port = broker.bootstrap_servers.split(":")
        sockets = [socket.create_connection((host, int(port)), PATIENCE_S) for _ in range(count)]
        try:
            with RawClient(broker.bootstrap_servers) as last:
                assert is_answered(last)
            assert len(broker.server.parts.network.routers[0]._queues) >= count
        finally:
            for each in sockets:
                each.close()
