"""Where the clients of an embedded broker connect."""

from __future__ import annotations

import re

import pytest

from barnabas import Broker, Cluster
from barnabas.testing.embedded.first_listener import address, with_port
from barnabas.testing.embedded.settings import Setting


@pytest.mark.parametrize(
    ("listeners", "expected"),
    [
        ("", "127.0.0.1:7"),
        ("PLAINTEXT://:0", "127.0.0.1:7"),
        ("PLAINTEXT://0.0.0.0:9092", "127.0.0.1:7"),
        ("PLAINTEXT://localhost:0", "127.0.0.1:7"),
        ("PLAINTEXT://127.0.0.2:0,B://[::1]:0", "127.0.0.2:7"),
        ("PLAINTEXT://[::]:0", "[::1]:7"),
        ("PLAINTEXT://[fe80::2]:0", "[fe80::2]:7"),
    ],
)
def test_an_address_is_one_that_a_client_here_can_use(listeners: str, expected: str) -> None:
    assert address({"listeners": listeners}, 7) == expected


def test_only_a_free_port_of_the_first_one_is_replaced() -> None:
    assert with_port({"listeners": "A://:0,B://:0"}, 7) == {"listeners": "A://:7,B://:0"}
    assert with_port({"listeners": "A://:9,B://:0"}, 7) == {"listeners": "A://:9,B://:0"}


@pytest.mark.parametrize("listener", ["PLAINTEXT://[::1]:0", "A://[::]:0,B://127.0.0.1:0"])
@pytest.mark.parametrize("is_process", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_tk_1_the_first_listener_is_where_its_clients_connect(
    listener: str, is_process: bool
) -> None:
    """Also one of IPv6; and a free port stays the broker's after a restart."""
    config: dict[str, Setting] = {
        "listeners": listener,
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,A:PLAINTEXT,B:PLAINTEXT",
    }
    with Broker(config=config, process=is_process) as broker:
        servers = broker.bootstrap_servers
        assert servers == f"[::1]:{broker.port}"
        topic = broker.topic("t")
        topic.send(b"one")
        broker.stop()
        broker.start()
        assert broker.bootstrap_servers == servers
        assert topic.values() == [b"one"]


@pytest.mark.parametrize("is_process", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_tk_1_a_cluster_listens_where_its_configs_say(is_process: bool) -> None:
    """And each broker keeps its port."""
    config = {"listeners": "PLAINTEXT://[::1]:0"}
    own = {2: {"listeners": "PLAINTEXT://127.0.0.1:0"}}
    with Cluster(2, config=config, broker_config=own, process=is_process) as cluster:
        servers = cluster.bootstrap_servers
        assert re.fullmatch(r"\[::1\]:\d+,127\.0\.0\.1:\d+", servers)
        topic = cluster.topic("t", replication_factor=2)
        topic.send(b"one")
        cluster.stop_broker(1)
        cluster.start_broker(1)
        assert sorted(cluster.bootstrap_servers.split(",")) == sorted(servers.split(","))
        cluster.stop()
        cluster.start()
        assert cluster.bootstrap_servers == servers
        assert topic.values() == [b"one"]
