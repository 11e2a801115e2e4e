"""Values, sources and synonyms, as Kafka 3.9 reports them (KIP-226)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from barnabas.broker.configs.effective_config import (
    Effective,
    Source,
    broker_configs,
    cluster_configs,
    topic_configs,
)
from barnabas.config import BrokerConfig
from barnabas.protocol.api import DESCRIBE_CONFIGS
from barnabas.protocol.frame import decode_response

TOPIC, BROKER, ALL, FILE, DEFAULT, _ = Source


def config(
    static: dict[str, str] | None = None,
    per_broker: dict[str, str] | None = None,
    cluster_wide: dict[str, str] | None = None,
) -> BrokerConfig:
    made = BrokerConfig({"log.dir": "/d", **(static or {})})
    return made.with_dynamic(per_broker or {}, cluster_wide or {})


def of_topic(config: BrokerConfig, name: str, **overrides: str) -> Effective:
    named = {key.replace("_", "."): value for key, value in overrides.items()}
    (found,) = (each for each in topic_configs(config, named) if each.key.name == name)
    return found


def of_broker(config: BrokerConfig, name: str) -> Effective:
    (found,) = (each for each in broker_configs(config) if each.key.name == name)
    return found


def synonyms_of(config: Effective) -> list[tuple[str, str | None, Source]]:
    return [tuple(each) for each in config.synonyms]  # type: ignore[misc]


def test_everything_that_sets_a_value_is_listed_strongest_first() -> None:
    both = config(
        {"log.segment.bytes": "1000"}, {"log.segment.bytes": "2000"}, {"log.segment.bytes": "3000"}
    )
    synonyms = [
        ("log.segment.bytes", "2000", BROKER),
        ("log.segment.bytes", "3000", ALL),
        ("log.segment.bytes", "1000", FILE),
        ("log.segment.bytes", "1073741824", DEFAULT),
    ]
    broker = of_broker(both, "log.segment.bytes")
    assert (broker.value, broker.source, synonyms_of(broker)) == ("2000", BROKER, synonyms)
    topic = of_topic(both, "segment.bytes")
    assert (topic.value, topic.source, synonyms_of(topic)) == ("2000", BROKER, synonyms)
    own = of_topic(both, "segment.bytes", segment_bytes="500")
    assert (own.value, own.source) == ("500", TOPIC)
    assert synonyms_of(own) == [("segment.bytes", "500", TOPIC), *synonyms]


def test_of_several_units_only_the_first_counts_as_a_source() -> None:
    """Kafka's own oddity: hours set by the file are reported as a default of the topic."""
    hours = config({"log.retention.hours": "100"})
    topic = of_topic(hours, "retention.ms")
    assert (topic.value, topic.source, synonyms_of(topic)) == ("360000000", DEFAULT, [])
    assert synonyms_of(of_broker(hours, "log.retention.hours")) == [
        ("log.retention.hours", "100", FILE),
        ("log.retention.hours", "168", DEFAULT),
    ]
    both = config({"log.retention.hours": "100"}, {}, {"log.retention.ms": "60000"})
    assert synonyms_of(of_broker(both, "log.retention.ms")) == [
        ("log.retention.ms", "60000", ALL),
        ("log.retention.hours", "100", FILE),
        ("log.retention.hours", "168", DEFAULT),
    ]
    assert of_broker(both, "log.retention.minutes").value is None


def test_the_schedulers_interval_stands_for_the_flush_interval_and_not_the_other_way() -> None:
    flushing = config({}, {"log.flush.interval.ms": "5"})
    scheduler = ("log.flush.scheduler.interval.ms", "9223372036854775807", DEFAULT)
    assert synonyms_of(of_broker(flushing, "log.flush.interval.ms")) == [
        ("log.flush.interval.ms", "5", BROKER),
        scheduler,
    ]
    assert synonyms_of(of_broker(flushing, "log.flush.scheduler.interval.ms")) == [scheduler]
    both = config(dict.fromkeys(("log.flush.interval.ms", scheduler[0]), "7"))
    assert synonyms_of(of_broker(both, "log.flush.interval.ms")) == [
        ("log.flush.interval.ms", "7", FILE),
        (scheduler[0], "7", FILE),
        scheduler,
    ]
    later = both.with_dynamic({scheduler[0]: "5"}, {})
    assert ("log.flush.interval.ms", "7", FILE) not in synonyms_of(of_broker(later, scheduler[0]))


def test_settings_of_one_listener_are_listed() -> None:
    name = "listener.name.plaintext.max.connections"
    one = of_broker(config({}, {name: "40"}, {name: "50"}), name)
    assert (one.value, one.source, one.is_read_only) == ("40", BROKER, True)
    assert synonyms_of(one) == [
        (name, "40", BROKER),
        (name, "50", ALL),
        ("max.connections", "2147483647", DEFAULT),
    ]
    plug_in = of_broker(config({"rsm.config.bucket": "b"}), "rsm.config.bucket")
    assert (plug_in.value, plug_in.key.is_sensitive) == (None, True)


def test_no_secret_is_shown() -> None:
    """SE-6"""
    secret = of_broker(config({"ssl.key.password": "hush"}), "ssl.key.password")
    assert (secret.value, secret.source) == (None, FILE)
    assert synonyms_of(secret) == [("ssl.key.password", None, FILE)]


def test_internal_configs_are_listed_where_they_are_set() -> None:
    name = "producer.id.expiration.check.interval.ms"
    assert name not in [each.key.name for each in broker_configs(config())]
    assert of_broker(config({name: "5"}), name).value == "5"


def test_of_all_brokers_only_what_is_set_for_them() -> None:
    both = config({"num.partitions": "3"}, {"message.max.bytes": "7"}, {"log.roll.ms": "9"})
    (only,) = cluster_configs(both)
    assert (only.key.name, only.value, only.source) == ("log.roll.ms", "9", ALL)
    assert synonyms_of(only) == [("log.roll.ms", "9", ALL)]


# The broker behind the recordings had these two settings, the topics those in the recordings.
RECORDED = {"log.retention.ms": "-1", "message.max.bytes": "2000000"}


@pytest.mark.foreign
def test_topics_are_described_as_a_real_kafka_described_them(shared: Path) -> None:
    """Every recorded answer: names, values, sources, synonyms, types, secrets, read-only flags."""
    compared = 0
    for exchange in _recorded(shared):
        frame = memoryview(bytes.fromhex(exchange["response_hex"]))
        _, answer = decode_response(DESCRIBE_CONFIGS, exchange["version"], frame)
        for result in answer.results:  # type: ignore[attr-defined]
            overrides = {c.name: c.value for c in result.configs if c.config_source == TOPIC}
            ours = {each.key.name: each for each in topic_configs(config(RECORDED), overrides)}
            assert sorted(ours) == sorted(c.name for c in result.configs)
            for theirs in result.configs:
                mine = ours[theirs.name]
                assert (mine.value, mine.source) == (theirs.value, theirs.config_source)
                assert mine.key.is_sensitive == theirs.is_sensitive
                assert mine.is_read_only == theirs.read_only
                if theirs.synonyms:
                    assert synonyms_of(mine) == [
                        (s.name, s.value, s.source) for s in theirs.synonyms
                    ]
                compared += 1
    print(f"{compared} recorded configs described alike")
    assert compared == 3 * 36


def _recorded(shared: Path) -> list[dict[str, Any]]:
    files = sorted((shared / "fixtures" / "kafka-3.9" / "wire").glob("*.jsonl"))
    exchanges = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    return [each for each in exchanges if each["api_key"] == DESCRIBE_CONFIGS.key]
