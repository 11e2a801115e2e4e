"""Properties files of KRaft: one node starts, several do not become as many brokers (UX-3)."""

from __future__ import annotations

import pytest

from barnabas.broker.network.listeners import configured_listeners
from barnabas.config import BrokerConfig, parse_properties
from barnabas.errors import ConfigError

# The sample file of Kafka 4, without what a file of ZooKeeper's time has as well.
KAFKA_4 = parse_properties(
    """
process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=localhost:9093
listeners=PLAINTEXT://:9092,CONTROLLER://:9093
inter.broker.listener.name=PLAINTEXT
advertised.listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL
log.dirs=/srv/kraft-combined-logs
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
"""
)
# And that of Kafka 3.
KAFKA_3 = {
    **{name: text for name, text in KAFKA_4.items() if "bootstrap" not in name},
    "controller.quorum.voters": "1@localhost:9093",
}
WAYS_OUT = r"For a single node .* For several nodes set zookeeper\.connect"


@pytest.mark.parametrize("sample", [KAFKA_4, KAFKA_3], ids=["Kafka 4", "Kafka 3"])
def test_the_sample_file_of_one_node_starts_and_says_what_it_is(sample: dict[str, str]) -> None:
    config = BrokerConfig(sample)
    assert config.int("broker.id") == 1
    assert [str(each) for each in configured_listeners(config)] == ["PLAINTEXT://:9092"]
    assert config.str("advertised.listeners") == "PLAINTEXT://localhost:9092"
    warnings = [each for each in config.warnings if "no other node can join" in each]
    assert warnings == [
        "process.roles=broker,controller runs as a single node without a KRaft quorum: its "
        "metadata is kept in log.dirs, and no other node can join it"
    ]
    again = config.with_dynamic({}, {})
    assert again.properties == config.properties


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"process.roles": "broker"}, "its controllers are other nodes"),
        (
            {"controller.quorum.voters": "1@a:9093,2@b:9093,3@c:9093"},
            r"other nodes than node\.id=1",
        ),
        ({"controller.quorum.voters": "2@localhost:9093"}, r"other nodes than node\.id=1"),
        (
            {"controller.quorum.voters": ""},
            "neither .* nor .* shows that it is the only controller",
        ),
        ({"process.roles": "", "controller.quorum.voters": "1@a:9093,2@b:9093"}, r"node\.id=1"),
    ],
)
def test_one_node_of_several_does_not_start(changes: dict[str, str], reason: str) -> None:
    """Each of them would acknowledge what the others never see."""
    with pytest.raises(ConfigError, match=rf"{reason}, but .* separate brokers.* {WAYS_OUT}"):
        BrokerConfig({**KAFKA_3, **changes})


@pytest.mark.parametrize("servers", ["a:9093,b:9093", "elsewhere:9093", "localhost:9094"])
def test_a_quorum_elsewhere_is_not_this_node(servers: str) -> None:
    changed = {**KAFKA_4, "controller.quorum.bootstrap.servers": servers}
    with pytest.raises(ConfigError, match=r"controller listener, but .* separate brokers"):
        BrokerConfig(changed)


def test_a_quorum_at_an_address_of_ones_own_is_this_node() -> None:
    changed = {
        **KAFKA_4,
        "listeners": "PLAINTEXT://:9092,CONTROLLER://10.0.0.1:9093",
        "controller.quorum.bootstrap.servers": "10.0.0.1:9093",
    }
    BrokerConfig(changed)


def test_without_a_node_id_no_voter_is_this_node() -> None:
    nameless = {name: text for name, text in KAFKA_3.items() if name != "node.id"}
    with pytest.raises(ConfigError, match=r"node\.id, which identifies this node, is missing"):
        BrokerConfig(nameless)


def test_a_controller_is_no_broker() -> None:
    with pytest.raises(ConfigError, match=rf"a controller without a broker.* {WAYS_OUT}"):
        BrokerConfig({**KAFKA_3, "process.roles": "controller"})


def test_no_client_comes_in_by_a_listener_for_controllers() -> None:
    """Whatever else is set: without a name for them, a file of a controller does not start."""
    alone = {"log.dirs": "/d", "controller.listener.names": "controller"}
    config = BrokerConfig({**alone, "listeners": "CONTROLLER://:9093, PLAINTEXT://:9092"})
    assert [each.name for each in configured_listeners(config)] == ["PLAINTEXT"]
    with pytest.raises(ConfigError, match="has only controller listeners"):
        BrokerConfig({**alone, "listeners": "CONTROLLER://:9093"})
    with pytest.raises(ConfigError, match=r"needs controller\.listener\.names"):
        BrokerConfig({**KAFKA_3, "controller.listener.names": ""})


def test_a_listener_named_controller_is_for_controllers_without_another_word() -> None:
    """As when process.roles and controller.* are left out of a file, and nothing else."""
    listeners = "PLAINTEXT://:9092,CONTROLLER://:9093"
    mapped = "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT"
    given = {"listeners": listeners, "listener.security.protocol.map": mapped}
    config = BrokerConfig(given)
    assert [str(each) for each in configured_listeners(config)] == ["PLAINTEXT://:9092"]
    assert "the listener CONTROLLER is for controllers and is not opened" in config.warnings
    with pytest.raises(ConfigError, match="only controller listeners"):
        BrokerConfig({**given, "listeners": "CONTROLLER://:9093"})


@pytest.mark.parametrize("key", ["inter.broker.listener.name", "control.plane.listener.name"])
def test_a_listener_that_brokers_use_is_open_whatever_its_name(key: str) -> None:
    listeners = "PLAINTEXT://:9092,CONTROLLER://:9093"
    config = BrokerConfig({"listeners": listeners, key: "CONTROLLER"})
    assert config.str("listeners") == listeners
    assert not any("not opened" in each for each in config.warnings)


def test_with_zookeeper_brokers_find_each_other() -> None:
    config = BrokerConfig({**KAFKA_3, "process.roles": "broker", "zookeeper.connect": "z:2181"})
    assert [each for each in config.warnings if "find each other by zookeeper.connect" in each]
    assert [each.name for each in configured_listeners(config)] == ["PLAINTEXT"]
