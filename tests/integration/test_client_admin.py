"""Our admin client against our broker."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from barnabas.client.admin.admin import (
    BROKER,
    DEFAULT_CONFIG,
    DYNAMIC_BROKER_CONFIG,
    DYNAMIC_DEFAULT_BROKER_CONFIG,
    DYNAMIC_TOPIC_CONFIG,
    TOPIC,
    ConfigOperation,
    ConfigOperationType,
    ConfigResource,
    ConfigSynonym,
    NewTopic,
)
from barnabas.client.sync.producer import SyncAdmin, SyncProducer
from barnabas.errors import (
    BrokerNotAvailable,
    InvalidConfig,
    InvalidPartitions,
    InvalidReplicaAssignment,
    InvalidReplicationFactor,
    InvalidRequest,
    InvalidTopic,
    TopicAlreadyExists,
    UnknownTopicOrPartition,
)
from barnabas.types import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Iterator

    from barnabas.testing.embedded.broker import Broker

pytestmark = pytest.mark.secured


SET, DELETE, APPEND, SUBTRACT = ConfigOperationType


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
    """TP-1, TP-5: the error names the topic; one that exists already is an error of its own."""
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
    configs = {entry.name: entry for entry in admin.describe_configs(resource)}
    assert configs["retention.ms"].value == "12345"
    assert configs["retention.ms"].source == DYNAMIC_TOPIC_CONFIG
    assert configs["segment.bytes"].value == "1073741824"
    assert configs["segment.bytes"].source == DEFAULT_CONFIG
    (only,) = admin.describe_configs(
        ConfigResource(BROKER, "0"),
        ["num.partitions"],
        include_synonyms=True,
        include_documentation=True,
    )
    assert (only.value, only.type, only.is_read_only) == ("1", "int", True)
    assert only.synonyms == (ConfigSynonym("num.partitions", "1", DEFAULT_CONFIG),)
    assert only.documentation
    both = [resource, ConfigResource(BROKER, "")]
    assert [len(entries) for entries in admin.describe_configs(both).values()] == [36, 0]


def test_configs_of_more_topics_than_a_request_holds(admin: SyncAdmin) -> None:
    """Each resource has its own configs, in the order of the list, which may repeat one."""
    names = [f"t{number}" for number in range(205)]
    admin.create_topics([NewTopic(name, 1, 1, {"retention.ms": name[1:]}) for name in names])
    resources = [ConfigResource(TOPIC, name) for name in [*reversed(names), "t7"]]
    resources.insert(3, ConfigResource(BROKER, ""))
    described = admin.describe_configs(resources, ["retention.ms"])
    assert list(described) == list(dict.fromkeys(resources))
    for resource, entries in described.items():
        values = [each.value for each in entries]
        assert values == ([resource.name[1:]] if resource.type == TOPIC else [])


def test_configs_are_changed_one_by_one(admin: SyncAdmin) -> None:
    """TP-4, UX-3"""
    admin.create_topics([NewTopic("changed", configs={"flush.ms": "7"})])
    resource = ConfigResource(TOPIC, "changed")

    def own() -> dict[str, str | None]:
        entries = admin.describe_configs(resource)
        return {each.name: each.value for each in entries if each.source == DYNAMIC_TOPIC_CONFIG}

    admin.alter_configs(
        resource,
        [
            ConfigOperation("retention.ms", SET, "5000"),
            ConfigOperation("cleanup.policy", APPEND, "compact"),
            ConfigOperation("flush.ms", DELETE),
        ],
    )
    assert own() == {"retention.ms": "5000", "cleanup.policy": "delete,compact"}
    admin.alter_configs(resource, [ConfigOperation("cleanup.policy", SUBTRACT, "delete")])
    assert own() == {"retention.ms": "5000", "cleanup.policy": "compact"}
    admin.alter_configs(
        resource, [ConfigOperation("retention.ms", SET, "6000")], validate_only=True
    )
    assert own()["retention.ms"] == "5000"
    with pytest.raises(InvalidConfig, match=r"'changed'.*did you mean retention\.ms"):
        admin.alter_configs(resource, [ConfigOperation("retention.mss", SET, "1")])
    with pytest.raises(UnknownTopicOrPartition, match="'never'"):
        admin.alter_configs(ConfigResource(TOPIC, "never"), [])


def test_brokers_are_changed_while_they_run(admin: SyncAdmin) -> None:
    """Of one broker, and of all; the one's own setting is the stronger."""
    one, every = ConfigResource(BROKER, "0"), ConfigResource(BROKER, "")
    name = "log.segment.bytes"
    admin.alter_configs(every, [ConfigOperation(name, SET, "3000000")])
    admin.alter_configs(one, [ConfigOperation(name, SET, "2000000")])
    (entry,) = admin.describe_configs(one, [name], include_synonyms=True)
    assert (entry.value, entry.source) == ("2000000", DYNAMIC_BROKER_CONFIG)
    assert [synonym.source for synonym in entry.synonyms] == [
        DYNAMIC_BROKER_CONFIG,
        DYNAMIC_DEFAULT_BROKER_CONFIG,
        DEFAULT_CONFIG,
    ]
    for resource in (one, every):
        admin.alter_configs(resource, [ConfigOperation(name, DELETE)])
    with pytest.raises(InvalidRequest, match="properties file"):
        admin.alter_configs(one, [ConfigOperation("num.partitions", SET, "2")])
    for unknown in ("7", "x"):
        with pytest.raises(BrokerNotAvailable, match=f"'{unknown}'"):
            admin.alter_configs(ConfigResource(BROKER, unknown), [])


def test_a_topic_gets_more_partitions(admin: SyncAdmin) -> None:
    """TP-1"""
    admin.create_topics([NewTopic("grows", 1)])

    def partitions() -> int:
        (topic,) = admin.describe_topics(["grows"])
        return len(topic.partitions)

    admin.create_partitions("grows", 2)
    assert partitions() == 2
    admin.create_partitions("grows", 5, validate_only=True)
    assert partitions() == 2
    admin.create_partitions("grows", 4, [[0], [0]])
    assert partitions() == 4
    with pytest.raises(InvalidPartitions, match="'grows'"):
        admin.create_partitions("grows", 3)
    with pytest.raises(InvalidReplicaAssignment, match="'grows'"):
        admin.create_partitions("grows", 5, [[9]])
    with pytest.raises(UnknownTopicOrPartition, match="'never'"):
        admin.create_partitions("never", 3)


def test_log_directories_list_their_replicas(broker: Broker, admin: SyncAdmin) -> None:
    admin.create_topics([NewTopic("stored", 2)])
    with SyncProducer(broker.bootstrap_servers) as producer:
        producer.send("stored", b"x" * 1000, partition=1).result(120)
    described = admin.describe_log_dirs()
    (directory,) = described[0]
    assert (directory.path, directory.error) == (str(broker.data_dir), None)
    assert directory.replicas[TopicPartition("stored", 0)].size_bytes == 0
    replica = directory.replicas[TopicPartition("stored", 1)]
    assert 1000 < replica.size_bytes < 1200
    assert (replica.offset_lag, replica.is_future) == (0, False)
    assert 0 < directory.usable_bytes <= directory.total_bytes


def test_the_cluster_names_its_brokers(broker: Broker, admin: SyncAdmin) -> None:
    cluster = admin.describe_cluster()
    assert cluster.controller_id == 0
    assert len(cluster.cluster_id) == 22
    (only,) = cluster.brokers
    assert (only.broker_id, f"{only.host}:{only.port}") == (0, broker.bootstrap_servers)
