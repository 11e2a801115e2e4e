"""UX-3: every setting is obeyed, warned about, or refused with a sentence that helps."""

from __future__ import annotations

import re

import pytest

from barnabas.config import (
    BROKER_KEYS,
    TOPIC_KEYS,
    BrokerConfig,
    LogConfig,
)
from barnabas.config.topic_keys import unusable
from barnabas.config.zookeeper_keys import hosts_and_chroot
from barnabas.errors import ConfigError


def _config(**settings: str) -> BrokerConfig:
    named = {name.replace("_", "."): value for name, value in settings.items()}
    return BrokerConfig({"log.dirs": "/data", **named})


def test_every_key_has_a_type_a_default_of_it_and_a_sentence() -> None:
    """UX-3"""
    for key in (*BROKER_KEYS.values(), *TOPIC_KEYS.values()):
        assert key.doc.endswith("."), key.name
        if key.default is not None:
            # A default is a value that one could write down, and lies within the bounds.
            assert key.parse(str(key.text(key.default))) == key.default_value, key.name


def test_a_default_is_given_where_nothing_is_set() -> None:
    config = _config()
    assert config.int("broker.id") == 0
    assert config.int("num.partitions") == 1
    assert config.bool("auto.create.topics.enable") is True
    assert config.str("listeners") == "PLAINTEXT://:9092"
    assert config.str("advertised.listeners") == ""
    assert not config.is_set("listeners")
    assert config.warnings == []


def test_a_setting_is_typed() -> None:
    config = _config(num_partitions="3", delete_topic_enable="False", broker_rack="r1")
    assert config.int("num.partitions") == 3
    assert config.bool("delete.topic.enable") is False
    assert config.str("broker.rack") == "r1"
    assert config.is_set("broker.rack")


def test_an_unknown_key_names_the_nearest_one() -> None:
    """UX-3"""
    with pytest.raises(
        ConfigError, match=r"num\.partition is not a broker config; did you mean num"
    ):
        BrokerConfig({"num.partition": "3"})
    with pytest.raises(ConfigError, match=r"log\.cleaner\.thread .* did you mean log\.cleaner\."):
        BrokerConfig({"log.cleaner.thread": "3"})


def test_a_bad_value_names_key_value_and_rule() -> None:
    """UX-3"""
    with pytest.raises(ConfigError, match=r"num\.partitions: '0' is not one of \[1,\.\.\.\]"):
        BrokerConfig({"num.partitions": "0"})


def test_what_kafka_knows_and_we_do_not_need_is_a_warning() -> None:
    """UX-3"""
    config = _config(num_io_threads="16", metric_reporters="com.example.Reporter")
    assert config.warnings == [
        "num.io.threads has no effect: Barnabas does this work on one event loop",
        "metric.reporters has no effect: Barnabas does not run on the Java platform",
    ]


def test_even_a_key_without_effect_has_its_value_checked() -> None:
    with pytest.raises(ConfigError, match=r"num\.io\.threads"):
        _config(num_io_threads="many")


def test_a_key_of_one_listener_is_known_by_its_beginning() -> None:
    config = BrokerConfig({"log.dirs": "/d", "listener.name.in.plug.in": "k"})
    assert len(config.warnings) == 1


@pytest.mark.parametrize(
    ("connect", "hosts", "chroot"),
    [
        ("zk:2181", "zk:2181", ""),
        ("zk", "zk:2181", ""),
        ("a:1, b:2 ,[::1]:3/kafka", "a:1,b:2,[::1]:3", "/kafka"),
        ("[::1]", "[::1]:2181", ""),
        ("zk:2181/", "zk:2181", ""),
        ("zk:2181/a/b/", "zk:2181", "/a/b"),
    ],
)
def test_addresses_of_zookeeper(connect: str, hosts: str, chroot: str) -> None:
    """ZK-6: host:2181[,host:2181...][/chroot]"""
    assert hosts_and_chroot(connect) == (hosts, chroot)
    assert BrokerConfig({"zookeeper.connect": connect}).str("zookeeper.connect") == connect


@pytest.mark.parametrize(
    "connect",
    ["/kafka", "a:b", "a:0", "a:65536", "a:1,,b:1", "a:1,", "::1:2181", "a:1//x", ":2181"],
)
def test_what_is_no_address_of_zookeeper(connect: str) -> None:
    """ZK-6: before anything is tried; the message has the setting and its value."""
    with pytest.raises(ConfigError, match="zookeeper.connect=" + re.escape(connect)):
        BrokerConfig({"zookeeper.connect": connect})


def test_the_data_directories() -> None:
    """TP-3: `log.dirs`, else `log.dir`, else a temporary one, which is warned about."""
    assert BrokerConfig({"log.dirs": "/a, /b"}).log_directories() == ["/a", "/b"]
    assert BrokerConfig({"log.dir": "/a"}).log_directories() == ["/a"]
    fallback = BrokerConfig({})
    assert fallback.log_directories() == ["/tmp/kafka-logs"]
    assert "temporary directory" in fallback.warnings[0]


@pytest.mark.parametrize("directories", [" , ", "/a,/b,/a"])
def test_data_directories_that_cannot_be(directories: str) -> None:
    with pytest.raises(ConfigError, match=r"log\.dirs"):
        BrokerConfig({"log.dirs": directories, "log.dir": ""})


def test_a_topic_takes_what_it_does_not_set_from_the_broker() -> None:
    config = _config(log_segment_bytes="1000", message_max_bytes="2000", log_roll_hours="2")
    log = config.log_config()
    assert (log.segment_bytes, log.max_message_bytes) == (1000, 2000)
    assert log.segment_ms == 2 * 3_600_000
    assert config.log_config({"segment.bytes": "500"}).segment_bytes == 500
    assert config.log_config({"segment.bytes": "500"}).max_message_bytes == 2000


@pytest.mark.parametrize(
    ("settings", "retention_ms"),
    [
        ({"log.retention.hours": "1"}, 3_600_000),
        ({"log.retention.hours": "1", "log.retention.minutes": "1"}, 60_000),
        ({"log.retention.ms": "5", "log.retention.minutes": "1"}, 5),
        ({"log.retention.hours": "-1"}, -1),
    ],
)
def test_the_finest_unit_wins(settings: dict[str, str], retention_ms: int) -> None:
    assert BrokerConfig(settings).log_config().retention_ms == retention_ms


def test_what_topics_cannot_take_over_is_refused_by_the_name_that_was_set() -> None:
    with pytest.raises(ConfigError, match=r"log\.roll\.ms=0: segment\.ms: '0' is not one of"):
        _config(log_roll_ms="0")


def test_a_bad_topic_config_is_refused() -> None:
    config = _config()
    with pytest.raises(
        ConfigError, match=r"retention\.mss is not a topic config; did you mean ret"
    ):
        config.check_topic({"retention.mss": "1"})
    with pytest.raises(ConfigError, match=r"cleanup\.policy"):
        config.check_topic({"cleanup.policy": "forget"})


def test_bad_topic_configs_that_are_stored_are_left_out() -> None:
    """UX-4: by hand, or by another version; the topic is there with the others."""
    stored = {"flush.ms": "7", "segment.bytes": "x", "no.such": "1"}
    assert sorted(unusable(stored)) == ["no.such", "segment.bytes"]
    assert _config().log_config(stored) == _config().log_config({"flush.ms": "7"})
    contradiction = {"min.compaction.lag.ms": "9", "max.compaction.lag.ms": "8"}
    assert _config().log_config(contradiction) == _config().log_config()


def test_log_config_has_a_field_for_each_topic_config_with_its_default() -> None:
    assert LogConfig._fields == tuple(name.replace(".", "_") for name in TOPIC_KEYS)
    for name, key in TOPIC_KEYS.items():
        assert getattr(LogConfig(), name.replace(".", "_")) == key.default, name


def test_topic_configs_name_broker_configs_of_the_same_default() -> None:
    for key in TOPIC_KEYS.values():
        defaults = [BROKER_KEYS[name].default for name in key.synonyms]
        hours = [168] if key.name in ("segment.ms", "retention.ms") else [None]
        assert not defaults or {key.default, *hours} & set(defaults), key.name


def test_a_lag_that_cannot_be_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"min\.compaction\.lag\.ms"):
        LogConfig().with_overrides({"min.compaction.lag.ms": "9", "max.compaction.lag.ms": "8"})


def test_the_old_timestamp_bound_counts_for_what_is_not_set() -> None:
    """KIP-937"""
    old = {"message.timestamp.difference.max.ms": "5", "message.timestamp.after.max.ms": "9"}
    log = LogConfig().with_overrides(old)
    assert log.message_timestamp_before_max_ms == 5
    assert log.message_timestamp_after_max_ms == 9
