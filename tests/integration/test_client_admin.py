"""Our admin client against our broker."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from barnabas.client.admin import (
    BROKER,
    DYNAMIC_TOPIC_CONFIG,
    TOPIC,
    ConfigResource,
    NewTopic,
)
from barnabas.client.sync import SyncAdmin
from barnabas.errors import (
    InvalidConfig,
    InvalidPartitions,
    InvalidReplicationFactor,
    InvalidTopic,
    TopicAlreadyExists,
    UnknownTopicOrPartition,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from barnabas.broker.embedded import Broker


@pytest.fixture
def admin(broker: Broker) -> Iterator[SyncAdmin]:
    with SyncAdmin(broker.bootstrap_servers) as admin:
        yield admin


def test_topics_are_created_described_and_deleted(admin: SyncAdmin) -> None:
    """TP-1, TP-4."""
    admin.create_topics([NewTopic("b", 3, 1, {"retention.ms": "1000"}), NewTopic("a")])
    assert [name for name in admin.list_topics() if len(name) == 1] == ["a", "b"]
    (topic,) = admin.describe_topics(["b"])
    assert (topic.name, topic.is_internal, len(topic.topic_id)) == ("b", False, 16)
    assert [
        (partition.partition, partition.leader, partition.replicas, partition.isr)
        for partition in topic.partitions
    ] == [(n, 0, (0,), (0,)) for n in range(3)]
    admin.delete_topics(["a", "b"])
    assert not {"a", "b"} & set(admin.list_topics())
    with pytest.raises(UnknownTopicOrPartition, match="'b'"):
        admin.describe_topics(["b"])


def test_checking_only_creates_nothing(admin: SyncAdmin) -> None:
    """TP-4: validateOnly."""
    admin.create_topics([NewTopic("checked", 2)], validate_only=True)
    assert "checked" not in admin.list_topics()


@pytest.mark.parametrize(
    ("topic", "problem"),
    [
        (NewTopic("zero", 0), InvalidPartitions),
        (NewTopic("many", 1, 5), InvalidReplicationFactor),
        (NewTopic("bad/name"), InvalidTopic),
        (NewTopic("odd", configs={"retention.ms": "soon"}), InvalidConfig),
        (NewTopic("odd", configs={"no.such.config": "1"}), InvalidConfig),
    ],
)
def test_what_cannot_be_created_says_why(
    admin: SyncAdmin, topic: NewTopic, problem: type[Exception]
) -> None:
    """TP-1, TP-5: the error names the topic; one that exists already is told apart."""
    with pytest.raises(problem, match=topic.name):
        admin.create_topics([topic])
    assert topic.name not in admin.list_topics()


def test_a_topic_cannot_be_created_twice_nor_deleted_when_it_is_not_there(
    admin: SyncAdmin,
) -> None:
    admin.create_topics([NewTopic("once")])
    with pytest.raises(TopicAlreadyExists, match="once"):
        admin.create_topics([NewTopic("once")])
    with pytest.raises(UnknownTopicOrPartition, match="never"):
        admin.delete_topics(["never"])


def test_an_explicit_assignment_sets_both_counts(admin: SyncAdmin) -> None:
    admin.create_topics([NewTopic("placed", assignment={0: [0], 1: [0]})])
    (topic,) = admin.describe_topics(["placed"])
    assert [partition.replicas for partition in topic.partitions] == [(0,), (0,)]


def test_configs_come_with_their_source(admin: SyncAdmin) -> None:
    """UX-3: of topics and of brokers."""
    admin.create_topics([NewTopic("configured", configs={"retention.ms": "12345"})])
    resource = ConfigResource(TOPIC, "configured")
    configs = {entry.name: entry for entry in admin.describe_configs([resource])[resource]}
    assert configs["retention.ms"].value == "12345"
    assert configs["retention.ms"].source == DYNAMIC_TOPIC_CONFIG
    assert configs["segment.bytes"].value == "1073741824"
    assert configs["segment.bytes"].source != DYNAMIC_TOPIC_CONFIG
    broker = ConfigResource(BROKER, "0")
    described = admin.describe_configs([broker], documentation=True)[broker]
    (threads,) = [entry for entry in described if entry.name == "num.partitions"]
    assert threads.value == "1"
    assert threads.documentation


def test_the_cluster_names_its_brokers(broker: Broker, admin: SyncAdmin) -> None:
    cluster = admin.describe_cluster()
    assert cluster.controller_id == 0
    assert len(cluster.cluster_id) == 22
    (only,) = cluster.brokers
    assert (only.broker_id, f"{only.host}:{only.port}") == (0, broker.bootstrap_servers)
