"""Listeners: parsing, binding, what is advertised."""

from __future__ import annotations

import socket

import pytest

from barnabas import Broker
from barnabas.broker.network.listeners import (
    Listener,
    advertised_endpoints,
    bind,
    configured_listeners,
    exposures,
    parse_listeners,
    socket_options,
)
from barnabas.config import BrokerConfig
from barnabas.errors import ConfigError
from barnabas.protocol.api import METADATA
from barnabas.protocol.messages.metadata import MetadataRequest
from tests.kit.raw_client import RawClient


def config(**properties: str) -> BrokerConfig:
    return BrokerConfig(
        {"log.dirs": "data", **{name.replace("_", "."): text for name, text in properties.items()}}
    )


def test_the_default_is_kafkas() -> None:
    """ZK-2: PLAINTEXT://:9092"""
    assert configured_listeners(config()) == [Listener("PLAINTEXT", "", 9092)]


def test_a_listener_open_to_all_is_named() -> None:
    """SE-6: clients are not authenticated, so the operator has to know."""
    text = "A://:9092,B://0.0.0.0:9093,C://[::]:9094,D://127.0.0.1:9095,E://[::1]:9096,F://h:9097"
    warnings = exposures(config(), parse_listeners("listeners", text))
    assert [warning.split(" is open on all addresses")[0] for warning in warnings] == [
        "listener A://:9092",
        "listener B://0.0.0.0:9093",
        "listener C://[::]:9094",
    ]


def test_several_listeners_and_ipv6() -> None:
    text = "PLAINTEXT://10.0.0.1:9092, INNER://[::1]:0"
    assert parse_listeners("listeners", text) == [
        Listener("PLAINTEXT", "10.0.0.1", 9092),
        Listener("INNER", "::1", 0),
    ]
    assert str(Listener("INNER", "::1", 0)) == "INNER://[::1]:0"


@pytest.mark.parametrize(
    ("host", "address"),
    [("", "localhost:1"), ("0.0.0.0", "localhost:1"), ("::1", "[::1]:1"), ("h", "h:1")],
)
def test_a_client_on_this_machine_is_given_an_address_that_it_can_use(
    host: str, address: str
) -> None:
    """Of all addresses none is one: the certificate has no such name either."""
    assert Listener("PLAINTEXT", host, 1).address_here == address


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("localhost:9092", "NAME://HOST:PORT"),
        ("PLAINTEXT://localhost", "NAME://HOST:PORT"),
        ("PLAINTEXT://localhost:99999", "NAME://HOST:PORT"),
        ("PLAINTEXT://:1,PLAINTEXT://:2", "have the same name"),
        ("INNER://:9092", "listener.security.protocol.map"),
    ],
)
def test_a_bad_listener_is_refused_with_its_text(text: str, says: str) -> None:
    """UX-4: what, where and what to do, before a socket is opened."""
    with pytest.raises(ConfigError, match=says) as caught:
        configured_listeners(config(listeners=text))
    assert "listeners" in str(caught.value)


def test_a_taken_port_says_so() -> None:
    """UX-4"""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError, match=f"port {port} is in use"):
            bind(Listener("PLAINTEXT", "127.0.0.1", port))


def test_an_unknown_host_says_so() -> None:
    with pytest.raises(ConfigError, match="check the host name"):
        bind(Listener("PLAINTEXT", "no-such-host.invalid", 0))


def test_an_empty_host_is_reached_by_ipv4_and_ipv6() -> None:
    (bound,) = bind(Listener("PLAINTEXT", "", 0))
    with bound:
        port = bound.getsockname()[1]
        socket.create_connection(("127.0.0.1", port), 5).close()
        if bound.family == socket.AF_INET6:
            socket.create_connection(("::1", port), 5).close()


def test_what_is_advertised() -> None:
    """ZK-2: advertised.listeners, by default the listeners."""
    bound = [Listener("PLAINTEXT", "127.0.0.1", 9092)]
    endpoints, automatic = advertised_endpoints(config(), bound)
    assert (endpoints[0].host, endpoints[0].port) == ("127.0.0.1", 9092)
    assert not automatic
    configured = config(advertised_listeners="PLAINTEXT://192.168.3.224:9099")
    endpoints, automatic = advertised_endpoints(configured, bound)
    assert (endpoints[0].host, endpoints[0].port) == ("192.168.3.224", 9099)
    assert not automatic


def test_without_a_configured_host_the_host_name_is_advertised() -> None:
    endpoints, automatic = advertised_endpoints(config(), [Listener("PLAINTEXT", "", 9092)])
    assert endpoints[0].host == socket.gethostname()
    assert automatic == {"PLAINTEXT"}


@pytest.mark.parametrize(
    ("advertised", "says"),
    [("PLAINTEXT://0.0.0.0:9092", "cannot connect"), ("OTHER://h:1", "not among the listeners")],
)
def test_bad_advertised_listeners(advertised: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        advertised_endpoints(
            config(advertised_listeners=advertised), [Listener("PLAINTEXT", "", 9092)]
        )


def test_each_listener_advertises_its_own_address() -> None:
    """ZK-2: a client of the inner listener gets the inner address."""
    settings = {
        "listeners": "INNER://127.0.0.1:0,OUTER://127.0.0.1:0",
        "listener.security.protocol.map": "INNER:PLAINTEXT,OUTER:PLAINTEXT",
        "advertised.listeners": "INNER://127.0.0.1:0,OUTER://outside.example:7777",
        "inter.broker.listener.name": "INNER",
    }
    with Broker(config=settings) as broker:
        inner, outer = (f"127.0.0.1:{each.port}" for each in broker.server.listeners)
        with RawClient(inner) as client:
            answer = client.call(METADATA, 9, MetadataRequest(topics=[])).brokers[0]
            assert f"{answer.host}:{answer.port}" == inner
        with RawClient(outer) as client:
            answer = client.call(METADATA, 9, MetadataRequest(topics=[])).brokers[0]
            assert (answer.host, answer.port) == ("outside.example", 7777)


def test_buffer_sizes_are_set_only_where_they_are_configured() -> None:
    assert socket_options(BrokerConfig({})) == []
    sizes = {"socket.send.buffer.bytes": "65536", "socket.receive.buffer.bytes": "-1"}
    assert socket_options(BrokerConfig(sizes)) == [(socket.SO_SNDBUF, 65536)]


def test_the_inner_listener_has_to_be_one() -> None:
    """UX-4"""
    with pytest.raises(ConfigError, match="OTHER has no entry in listener"):
        configured_listeners(config(inter_broker_listener_name="OTHER"))
