"""Which configs change while brokers run, for whom, and which value wins (KIP-226)."""

from __future__ import annotations

import pytest

from barnabas.config import BrokerConfig, inert_warning, key_of
from barnabas.config.dynamic_keys import Scope, refusal, scope_of
from barnabas.errors import ConfigError


@pytest.mark.parametrize(
    ("name", "scope"),
    [
        ("num.partitions", Scope.READ_ONLY),
        ("log.retention.hours", Scope.READ_ONLY),
        ("log.retention.ms", Scope.CLUSTER_WIDE),
        ("barnabas.log.level", Scope.CLUSTER_WIDE),
        ("ssl.client.auth", Scope.PER_BROKER),
        ("ssl.keystore.location", Scope.PER_LISTENER),
        ("listener.name.tls.ssl.keystore.location", Scope.PER_BROKER),
        ("listener.name.tls.max.connections", Scope.CLUSTER_WIDE),
        ("leader.replication.throttled.rate", Scope.CLUSTER_WIDE),
        ("no.such.config", Scope.READ_ONLY),
    ],
)
def test_for_whom_a_config_can_be_changed(name: str, scope: Scope) -> None:
    assert scope_of(name) is scope


def test_a_refusal_says_what_to_do() -> None:
    """UX-4"""
    assert refusal("message.max.bytes", is_for_all=True) is None
    assert "properties file" in (refusal("num.partitions", is_for_all=False) or "")
    assert "name the broker" in (refusal("ssl.client.auth", is_for_all=True) or "")
    assert refusal("ssl.client.auth", is_for_all=False) is None
    assert "listener.name.<listener>.ssl" in (refusal("ssl.keystore.key", is_for_all=False) or "")


def test_what_is_changed_comes_before_the_properties() -> None:
    """A broker's own, then all brokers', then the file, then the default."""
    static = BrokerConfig({"log.dir": "/d", "message.max.bytes": "4", "log.retention.hours": "1"})
    changed = static.with_dynamic(
        {"message.max.bytes": "2"}, {"message.max.bytes": "3", "log.segment.bytes": "14"}
    )
    assert changed.int("message.max.bytes") == 2
    assert changed.int("log.segment.bytes") == 14
    assert changed.int("num.partitions") == 1
    log = changed.log_config()
    assert (log.max_message_bytes, log.segment_bytes, log.retention_ms) == (2, 14, 3_600_000)
    finer = changed.with_dynamic({}, {"log.retention.ms": "5"})
    assert finer.log_config().retention_ms == 5
    assert finer.int("message.max.bytes") == 4
    assert static.int("message.max.bytes") == 4
    assert finer.with_dynamic({}, {}).log_config() == static.log_config()


def test_a_bad_change_is_refused() -> None:
    config = BrokerConfig({"log.dir": "/d"})
    with pytest.raises(ConfigError, match=r"message\.max\.bytes"):
        config.with_dynamic({"message.max.bytes": "much"}, {})
    with pytest.raises(ConfigError, match=r"did you mean message\.max\.bytes"):
        config.with_dynamic({}, {"message.max.byte": "1"})


def test_settings_of_one_listener() -> None:
    """KIP-402: by the listener's name in small letters."""
    config = BrokerConfig({"log.dir": "/d", "listener.name.inside.max.connections": "7"})
    assert config.listener_int("INSIDE", "max.connections") == 7
    assert config.listener_int("OUTSIDE", "max.connections") is None
    assert config.warnings == []
    with pytest.raises(ConfigError, match=r"listener\.name\.inside\.max\.connections: 'x'"):
        BrokerConfig({"log.dir": "/d", "listener.name.inside.max.connections": "x"})


def test_names_without_a_row() -> None:
    assert key_of("listener.name.tls.ssl.keystore.password").is_sensitive
    assert key_of("listener.name.s.scram-sha-256.sasl.jaas.config").is_sensitive
    assert key_of("rsm.config.anything").is_sensitive  # who knows what it is
    assert key_of("follower.replication.throttled.rate").type == "long"
    assert "plug-in" in (inert_warning("rsm.config.anything") or "")
    assert inert_warning("message.max.bytes") is None
    with pytest.raises(ConfigError, match="no config has a similar name"):
        key_of("entirely.else")


def test_broker_id_and_node_id_are_one() -> None:
    """A KRaft properties file names only the second."""
    assert BrokerConfig({"log.dir": "/d", "node.id": "3"}).int("broker.id") == 3
    assert BrokerConfig({"log.dir": "/d", "broker.id": "3"}).int("node.id") == 3
    BrokerConfig({"log.dir": "/d", "broker.id": "3", "node.id": "3"})
    with pytest.raises(ConfigError, match=r"broker\.id=3 and node\.id=4 are the same setting"):
        BrokerConfig({"log.dir": "/d", "broker.id": "3", "node.id": "4"})


@pytest.mark.parametrize("text", ["x", "127.0.0.1", "127.0.0.1:many", ":5"])
def test_limits_of_single_addresses_are_checked(text: str) -> None:
    with pytest.raises(ConfigError, match=r"max\.connections\.per\.ip\.overrides"):
        BrokerConfig({"log.dir": "/d", "max.connections.per.ip.overrides": text})
    BrokerConfig({"log.dir": "/d", "max.connections.per.ip.overrides": "127.0.0.1:5, ::1:7"})


@pytest.mark.parametrize("name", ["log.retention.ms", "log.retention.hours"])
def test_no_time_to_keep_anything_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match=f"{name} is 0"):
        BrokerConfig({"log.dir": "/d", name: "0"})
