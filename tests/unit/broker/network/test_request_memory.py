"""The memory of requests: a bound without a setting, and nobody who keeps it from the others."""

from __future__ import annotations

import socket
import struct
from contextlib import ExitStack, suppress

import psutil
import pytest

from barnabas.broker.network.request_memory import LEAST_BYTES, limit_bytes
from barnabas.client.sync.producer import SyncProducer
from barnabas.config import BrokerConfig
from barnabas.protocol.api import CREATE_TOPICS, FETCH, PRODUCE
from barnabas.protocol.frame import encode_request
from barnabas.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from barnabas.testing.embedded.broker import Broker
from tests.kit.raw_client import RawClient

MIB = 1 << 20
_LIMIT_BYTES = 8 * MIB
_ANNOUNCED_BYTES = 100 * 1000 * 1000
_FOR_GOOD_MS = 600_000
_LARGE = {"linger_ms": 0, "max_request_size": 4 * MIB}


def test_a_broker_has_a_bound_without_any_setting() -> None:
    name = "queued.max.request.bytes"
    assert limit_bytes(BrokerConfig({}), 16 << 30) == 2 << 30
    assert limit_bytes(BrokerConfig({}), 256 * MIB) == LEAST_BYTES
    assert limit_bytes(BrokerConfig({name: "-1"}), 16 << 30) < 0
    assert limit_bytes(BrokerConfig({name: "0"}), 16 << 30) < 0
    assert limit_bytes(BrokerConfig({name: "1000"}), 16 << 30) == 1000


def _broker(stalled_ms: int) -> Broker:
    return Broker(
        config={
            "queued.max.request.bytes": str(_LIMIT_BYTES),
            "barnabas.request.stalled.ms": str(stalled_ms),
            "message.max.bytes": str(4 * MIB),
        }
    )


def _begin(broker: Broker, api_key: int, sent_bytes: int) -> socket.socket:
    """A connection that announces a large request, sends the front of it, and stops."""
    host, _, port = broker.bootstrap_servers.rpartition(":")
    connection = socket.create_connection((host, int(port)), timeout=10)
    connection.sendall(struct.pack(">ihhih", _ANNOUNCED_BYTES, api_key, 0, 1, -1))
    connection.settimeout(0.05)
    with suppress(TimeoutError):  # it is not read on
        connection.sendall(bytes(sent_bytes))
    return connection


def test_what_is_only_announced_costs_nothing() -> None:
    with _broker(_FOR_GOOD_MS) as broker, ExitStack() as stack:
        for _ in range(20):
            stack.enter_context(_begin(broker, CREATE_TOPICS.key, 0))
        producer = stack.enter_context(SyncProducer(broker.bootstrap_servers, **_LARGE))
        producer.send("t", bytes(3 * MIB)).result(30)


def test_large_requests_that_stall_hold_up_nobody(caplog: pytest.LogCaptureFixture) -> None:
    """UX-4: they have all of the memory. Those that stall are closed, and a client with large
    batches goes on."""
    process = psutil.Process()
    with _broker(200) as broker, ExitStack() as stack:
        producer = stack.enter_context(SyncProducer(broker.bootstrap_servers, **_LARGE))
        producer.send("t", b"first").result(30)
        before = process.memory_info().rss
        for _ in range(10):
            stack.enter_context(_begin(broker, CREATE_TOPICS.key, 4 * MIB))
        for _ in range(3):
            producer.send("t", bytes(3 * MIB)).result(30)
        grown = process.memory_info().rss - before
        assert grown < 80 * MIB, grown // MIB
    lines = [each for each in caplog.messages if "stalled for 200 ms" in each]
    assert lines and "barnabas.request.stalled.ms" in lines[0]


def test_brokers_do_not_wait_behind_clients() -> None:
    """Replication has its own part: its large requests are read while all else is full."""
    partitions = [FetchPartition(partition=each) for each in range(10_000)]
    request = FetchRequest(topics=[FetchTopic(topic="none", partitions=partitions)])
    assert sum(map(len, encode_request(FETCH, 12, 1, "", request))) > 300_000
    with _broker(_FOR_GOOD_MS) as broker, ExitStack() as stack:
        for _ in range(6):
            stack.enter_context(_begin(broker, PRODUCE.key, 4 * MIB))
        client = stack.enter_context(RawClient(broker.bootstrap_servers, 20))
        response = client.call(FETCH, 12, request)
        assert len(response.responses[0].partitions) == 10_000
