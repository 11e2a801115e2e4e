"""Foreign clients describe and alter the configs of topics and brokers.

Kafka's rules of precedence and of lists are tested where they are kept; here it is that a client's
change arrives, is described with its source, and takes effect.
"""

from __future__ import annotations

import pytest

from tests.conformance.clients_in_use import CHANGE_CONFIGS, LIBRARIES, SET_CONFIGS
from tests.kit.clients.clients import (
    DEFAULT,
    DYNAMIC_BROKER,
    DYNAMIC_TOPIC,
    STATIC_BROKER,
    AdminClient,
    Change,
    ChangesConfigs,
    ConfigSeen,
    Promise,
    Refused,
    Resource,
    Sent,
    SetsConfigs,
)
from tests.kit.secured.suite import PROTOCOL

pytestmark = pytest.mark.foreign

MESSAGE_TOO_LARGE = 10
INVALID_CONFIG = 40
THE_BROKER = Resource("broker", "0")
LEAST_TOPIC_CONFIGS = 30
LEAST_BROKER_CONFIGS = 200

by_library = pytest.mark.parametrize("client", LIBRARIES, ids=lambda client: client.name)
by_changer = pytest.mark.parametrize("client", CHANGE_CONFIGS, ids=lambda client: client.name)


def create(client: AdminClient, servers: str, name: str, configs: dict[str, str]) -> Resource:
    client.create_topic(servers, name, 1, configs)
    return Resource("topic", name)


@by_library
def test_every_config_of_a_topic_is_described_with_its_source(
    servers: str, client: AdminClient
) -> None:
    """UX-3"""
    topic = create(client, servers, f"described-{client.name}", {"segment.bytes": "1000000"})
    configs = client.describe_configs(servers, topic)
    assert configs["segment.bytes"] == ConfigSeen("1000000", DYNAMIC_TOPIC)
    assert configs["retention.ms"] == ConfigSeen("604800000", DEFAULT)
    assert len(configs) >= LEAST_TOPIC_CONFIGS


@by_library
def test_every_config_of_a_broker_is_described_with_its_source(
    servers: str, client: AdminClient
) -> None:
    """UX-3"""
    configs = client.describe_configs(servers, THE_BROKER)
    assert configs["listeners"] == ConfigSeen(f"{PROTOCOL}://{servers}", STATIC_BROKER)
    assert configs["num.partitions"] == ConfigSeen("1", DEFAULT)
    assert len(configs) >= LEAST_BROKER_CONFIGS


@pytest.mark.parametrize("client", SET_CONFIGS, ids=lambda client: client.name)
def test_configs_set_at_once_replace_all_others(servers: str, client: SetsConfigs) -> None:
    """UX-3: AlterConfigs. (The newest kafka-python names the others itself, so that they stay.)"""
    topic = create(client, servers, f"set-{client.name}", {"segment.bytes": "1000000"})
    client.alter_configs(servers, topic, {"retention.ms": "3600000"})
    configs = client.describe_configs(servers, topic)
    assert configs["retention.ms"] == ConfigSeen("3600000", DYNAMIC_TOPIC)
    left = ConfigSeen("1000000", DYNAMIC_TOPIC)
    gone = ConfigSeen("1073741824", DEFAULT)
    assert configs["segment.bytes"] == (left if client.name == "kafka-python" else gone)


@by_changer
def test_configs_are_changed_one_by_one(servers: str, client: ChangesConfigs) -> None:
    """UX-3: IncrementalAlterConfigs; what is not named stays."""
    topic = create(client, servers, f"changed-{client.name}", {"segment.bytes": "1000000"})
    changes = [
        Change("SET", "retention.ms", "3600000"),
        Change("APPEND", "cleanup.policy", "compact"),
    ]
    client.change_configs(servers, topic, changes)
    configs = client.describe_configs(servers, topic)
    assert configs["retention.ms"] == ConfigSeen("3600000", DYNAMIC_TOPIC)
    assert configs["cleanup.policy"] == ConfigSeen("delete,compact", DYNAMIC_TOPIC)
    assert configs["segment.bytes"] == ConfigSeen("1000000", DYNAMIC_TOPIC)
    changes = [Change("DELETE", "segment.bytes"), Change("SUBTRACT", "cleanup.policy", "delete")]
    client.change_configs(servers, topic, changes)
    configs = client.describe_configs(servers, topic)
    assert configs["segment.bytes"] == ConfigSeen("1073741824", DEFAULT)
    assert configs["cleanup.policy"] == ConfigSeen("compact", DYNAMIC_TOPIC)
    with pytest.raises(Refused) as refused:
        client.change_configs(servers, topic, [Change("SET", "retention.ms", "soon")])
    assert refused.value.code == INVALID_CONFIG


@by_changer
def test_a_topics_new_limit_holds_for_the_next_record(servers: str, client: ChangesConfigs) -> None:
    """UX-3: dynamic configs take effect at once."""
    topic = create(client, servers, f"limited-{client.name}", {})
    large = [Sent(0, b"key", bytes(5000))]
    client.produce(servers, topic.name, large, codec="none", promise=Promise(-1))
    client.change_configs(servers, topic, [Change("SET", "max.message.bytes", "1000")])
    with pytest.raises(Refused) as refused:
        client.produce(servers, topic.name, large, codec="none", promise=Promise(-1))
    assert refused.value.code == MESSAGE_TOO_LARGE
    client.change_configs(servers, topic, [Change("DELETE", "max.message.bytes")])
    client.produce(servers, topic.name, large, codec="none", promise=Promise(-1))


@by_changer
def test_a_brokers_config_is_changed_and_given_back(servers: str, client: ChangesConfigs) -> None:
    """UX-3: per broker, dynamic, above the static value and the default."""
    key = "log.cleaner.backoff.ms"
    client.change_configs(servers, THE_BROKER, [Change("SET", key, "12345")])
    changed = client.describe_configs(servers, THE_BROKER)[key]
    client.change_configs(servers, THE_BROKER, [Change("DELETE", key)])
    assert changed == ConfigSeen("12345", DYNAMIC_BROKER)
    assert client.describe_configs(servers, THE_BROKER)[key] == ConfigSeen("15000", DEFAULT)
