"""UX-5: the brokers that ZooKeeper names, as addresses for one client."""

from __future__ import annotations

import pytest

from barnabas.cli.kafka.options import Given
from barnabas.cli.kafka.zookeeper_brokers import Found, with_brokers
from barnabas.cluster.image import BrokerImage, Endpoint
from barnabas.errors import ConfigError


def found(*endpoints: tuple[Endpoint, ...]) -> Found:
    brokers = (BrokerImage(number, each, None, 1) for number, each in enumerate(endpoints))
    return Found(tuple(brokers), frozenset())


def endpoint(protocol: str, port: int, host: str = "h", name: str = "") -> Endpoint:
    return Endpoint(name or protocol, host, port, protocol)


def test_each_broker_has_the_first_listener_that_suits_the_client() -> None:
    brokers = found(
        (endpoint("SSL", 1), endpoint("PLAINTEXT", 2), endpoint("PLAINTEXT", 3, name="INSIDE")),
        (endpoint("SSL", 4),),
        (endpoint("PLAINTEXT", 5, "::1"),),
    )
    assert with_brokers(Given((), ()), brokers).text("bootstrap-server") == "h:2,[::1]:5"


def test_a_file_with_another_protocol_chooses_other_listeners(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    file = tmp_path_factory.mktemp("client") / "client.properties"
    file.write_text("security.protocol=sasl_ssl\n")
    given = Given([("command-config", str(file))], ())
    brokers = found((endpoint("PLAINTEXT", 2), endpoint("SASL_SSL", 3)))
    assert with_brokers(given, brokers).text("bootstrap-server") == "h:3"


def test_no_listener_for_the_client_is_an_error_that_names_those_there_are() -> None:
    brokers = found((endpoint("SSL", 1), endpoint("SASL_SSL", 2)))
    with pytest.raises(ConfigError, match="PLAINTEXT, only for SASL_SSL, SSL: set "):
        with_brokers(Given((), ()), brokers)
