"""MX-4: what cannot come along is named, with what to do about it."""

from __future__ import annotations

import pytest

from barnabas.cli.migrate.facts import BARNABAS, KAFKA, ClusterFacts
from barnabas.cli.migrate.findings import findings, return_findings
from barnabas.protocol.api import APIS
from tests.unit.cli.migrate.migrate_facts import KKK, broker, facts

OWN = {key: (api.min_version, api.max_version) for key, api in APIS.items()}


def with_config(name: str, text: str | None, kind: str = KAFKA) -> ClusterFacts:
    changed = broker(2, kind)._replace(configs={name: text}, versions=OWN)
    return KKK._replace(topics=(), brokers={2: changed})


def with_topic(name: str, text: str) -> ClusterFacts:
    return KKK._replace(topic_configs={"t": {name: text}})


def blocking(found: ClusterFacts) -> list[str]:
    return [each.text for each in findings(found) if each.blocks]


def notes(found: ClusterFacts) -> list[str]:
    return [each.text for each in findings(found) if not each.blocks]


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("process.roles", "broker", "it belongs to a KRaft cluster"),
        ("remote.log.storage.system.enable", "true", "it has tiered storage"),
        ("inter.broker.protocol.version", "2.6-IV0", "is below 2.7"),
        ("message.max.bites", "1", "message.max.bites"),
        ("authorizer.class.name", "com.example.Own", "authorizer.class.name"),
        ("listener.name.x.sasl.enabled.mechanisms", "PLAIN,GSSAPI", "Kerberos"),
        ("alter.config.policy.class.name", "com.example.Own", "a policy checks config changes"),
        ("log.message.format.version", "0.10.2", "formats 0 and 1"),
    ],
)
def test_a_config_that_cannot_come_along_blocks(name: str, text: str, expected: str) -> None:
    """MX-4"""
    [found] = blocking(with_config(name, text))
    assert found.startswith("broker 2: ")
    assert expected in found
    assert "; " in found, "it says what to do"
    assert blocking(with_config(name, text, BARNABAS)) == [], "such a broker is there already"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("remote.log.storage.system.enable", "false"),
        ("inter.broker.protocol.version", "2.8-IV1"),
        ("message.max.bytes", "1000"),
        ("ssl.keystore.password", None),
    ],
)
def test_a_config_that_works_is_not_named(name: str, text: str | None) -> None:
    assert blocking(with_config(name, text)) == []


def test_a_config_without_effect_is_a_note() -> None:
    [found] = notes(with_config("num.io.threads", "16"))
    assert found.startswith("broker 2: num.io.threads has no effect")


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("remote.storage.enable", "true", "its old segments are in tiered storage"),
        ("message.format.version", "0.10.2", "formats 0 and 1"),
        ("new.in.kafka.5", "1", "new.in.kafka.5 is unknown"),
    ],
)
def test_a_topic_that_cannot_come_along_blocks(name: str, text: str, expected: str) -> None:
    """MX-4"""
    [found] = blocking(with_topic(name, text))
    assert found.startswith("topic t: ")
    assert expected in found


def test_a_broker_without_zookeeper_cannot_return_to_kafka() -> None:
    """MX-4"""
    alone = with_config("log.dirs", "/data", BARNABAS)
    (found,) = return_findings(alone)
    assert found.text.startswith("broker 2: it runs without ZooKeeper, which Kafka needs; import")
    assert return_findings(with_config("zookeeper.connect", "zk:2181", BARNABAS)) == []
    assert return_findings(with_config("log.dirs", "/data", KAFKA)) == []


def test_apis_of_another_age_block() -> None:
    """MX-4"""
    old = broker(2)._replace(versions={key: each for key, each in OWN.items() if key != 56})
    [found] = blocking(KKK._replace(topics=(), brokers={2: old}))
    assert "it lacks the API AlterPartition" in found
    new = broker(2)._replace(versions={**OWN, 1: (18, 20)})
    [found] = blocking(KKK._replace(topics=(), brokers={2: new}))
    assert "it has Fetch in versions 18 to 20" in found
    kraft = broker(2)._replace(versions={**OWN, 55: (0, 1)})
    [found] = blocking(KKK._replace(topics=(), brokers={2: kraft}))
    assert "KRaft" in found


def test_features_block() -> None:
    """MX-4"""
    [found] = blocking(
        KKK._replace(topics=(), brokers={2: broker(2)._replace(features=("kraft.version",))})
    )
    assert "kraft.version" in found


def test_a_protocol_version_that_is_not_set_is_a_note() -> None:
    [found] = notes(KKK._replace(topics=(), brokers={2: broker(2)._replace(protocol="3.5-IV2")}))
    assert "set inter.broker.protocol.version=3.5-IV2" in found
    assert notes(KKK._replace(topics=(), brokers={2: broker(2)._replace(protocol="3.9-IV0")})) == []


def test_tokens_and_single_replicas_are_notes() -> None:
    """MX-4"""
    single = facts(KAFKA, KAFKA, replicas=(1,))._replace(tokens=2)
    assert blocking(single) == []
    tokens, alone = notes(single)
    assert "2 delegation tokens" in tokens
    assert "1 partition with a single replica (t-0)" in alone


def test_a_broker_that_was_not_checked_blocks() -> None:
    """MX-4"""
    [found] = blocking(facts(KAFKA, None, KAFKA))
    assert found == (
        "broker 2: it does not respond, so it was not checked; start it, and repeat the check"
    )
