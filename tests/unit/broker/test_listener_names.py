"""SE-2: which listener is for what, and what is said of settings that contradict: as Kafka."""

from __future__ import annotations

import re

import pytest

from barnabas.broker.listener_names import (
    control_plane_listener,
    inter_broker_listener,
    security_protocols,
)
from barnabas.broker.network.listeners import configured_listeners
from barnabas.config import BrokerConfig
from barnabas.errors import ConfigError
from barnabas.security.protocol import SecurityProtocol

THREE = {
    "listeners": "CLIENTS://:9092,BROKERS://:9093,CONTROLLERS://:9094",
    "listener.security.protocol.map": "CLIENTS:PLAINTEXT,BROKERS:SSL,CONTROLLERS:SSL",
}


def config(**settings: str) -> BrokerConfig:
    return BrokerConfig({name.replace("_", "."): text for name, text in settings.items()})


def three(**settings: str) -> BrokerConfig:
    others = {name.replace("_", "."): text for name, text in settings.items()}
    return BrokerConfig({**THREE, **others})


def test_se_2_the_listener_of_brokers_is_named_directly_or_by_its_protocol() -> None:
    assert inter_broker_listener(config()) == ("PLAINTEXT", SecurityProtocol.PLAINTEXT)
    assert inter_broker_listener(config(security_inter_broker_protocol="SSL")) == (
        "SSL",
        SecurityProtocol.SSL,
    )
    named = three(inter_broker_listener_name="brokers")
    assert inter_broker_listener(named) == ("BROKERS", SecurityProtocol.SSL)


def test_se_2_controllers_may_have_a_listener_of_their_own() -> None:
    both = three(inter_broker_listener_name="BROKERS", control_plane_listener_name="controllers")
    assert control_plane_listener(both) == "CONTROLLERS"
    assert control_plane_listener(three()) == ""
    assert [each.name for each in configured_listeners(both)] == [
        "CLIENTS",
        "BROKERS",
        "CONTROLLERS",
    ]


def test_se_2_every_protocol_can_be_mapped() -> None:
    assert security_protocols(three())["BROKERS"] is SecurityProtocol.SSL
    with pytest.raises(
        ConfigError, match=r"'A:TLS' is not NAME:PROTOCOL, where PROTOCOL is one of PLAIN"
    ):
        security_protocols(config(listener_security_protocol_map="A:TLS"))


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        (
            {"inter_broker_listener_name": "BROKERS", "security_inter_broker_protocol": "SSL"},
            "inter.broker.listener.name and security.inter.broker.protocol are both set",
        ),
        ({"inter_broker_listener_name": "OTHER"}, "OTHER has no entry in listener.security"),
        ({"security_inter_broker_protocol": "SSL"}, "SSL is not an advertised listener"),
        ({"zookeeper_connect": "zk:2181"}, "PLAINTEXT is not an advertised listener"),
        (
            {
                "inter_broker_listener_name": "BROKERS",
                "advertised_listeners": "CLIENTS://h:9092",
            },
            "BROKERS is not an advertised listener",
        ),
        (
            {"inter_broker_listener_name": "BROKERS", "control_plane_listener_name": "BROKERS"},
            "BROKERS is also the inter-broker listener",
        ),
        (
            {"inter_broker_listener_name": "BROKERS", "control_plane_listener_name": "OTHER"},
            "control.plane.listener.name: OTHER is not an advertised",
        ),
    ],
)
def test_se_2_what_contradicts_is_refused(settings: dict[str, str], says: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(says)):
        configured_listeners(three(**settings))


def test_a_broker_that_is_alone_needs_no_listener_for_others() -> None:
    assert len(configured_listeners(three())) == 3
