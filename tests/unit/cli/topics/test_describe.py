"""TP-4: the exact text of `topics describe`, and its filters."""

from __future__ import annotations

from io import StringIO

import pytest
from rich.console import Console

from barnabas.cli.tables import show_topics
from barnabas.cli.topics.describe import Filters, describe_text, describe_values
from barnabas.client.admin.admin import (
    DEFAULT_CONFIG,
    DYNAMIC_TOPIC_CONFIG,
    ConfigEntry,
    TopicDescription,
)
from barnabas.client.admin.partition_admin import Reassignment
from barnabas.client.view import PartitionView
from barnabas.types import TopicPartition, uuid_text

TOPIC_ID = bytes(range(16))


def config(name: str, value: str, source: int) -> ConfigEntry:
    return ConfigEntry(name, value, source, False, False, "string", (), None)


ONE = TopicDescription("test", TOPIC_ID, False, (PartitionView(0, 0, 0, (0,), (0,), ()),))
DEFAULTS = [config("min.insync.replicas", "1", DEFAULT_CONFIG)]

THREE = TopicDescription(
    "three",
    TOPIC_ID,
    False,
    (
        PartitionView(0, 1, 4, (1, 2, 3), (1, 2, 3), ()),
        PartitionView(1, 2, 4, (2, 3, 1), (2, 3), ()),
        PartitionView(2, 3, 4, (3, 1, 2), (3,), ()),
        PartitionView(3, -1, 4, (1, 2, 3), (1,), ()),
    ),
)
OWN = [
    config("min.insync.replicas", "2", DYNAMIC_TOPIC_CONFIG),
    config("retention.ms", "1000", DYNAMIC_TOPIC_CONFIG),
    config("segment.bytes", "1073741824", DEFAULT_CONFIG),
]


def test_one_partition_on_one_broker_is_described_as_kafka_does() -> None:
    """TP-4: exact, tabs and the trailing blank included."""
    assert describe_text([(ONE, DEFAULTS)], Filters()) == (
        "Topic: test\tTopicId: AAECAwQFBgcICQoLDA0ODw\tPartitionCount: 1\tReplicationFactor: 1\t"
        "Configs: \n"
        "\tTopic: test\tPartition: 0\tLeader: 0\tReplicas: 0\tIsr: 0\tElr: N/A\tLastKnownElr: N/A\n"
    )


def test_configs_and_several_replicas() -> None:
    first, second, *_, last = describe_text([(THREE, OWN)], Filters()).splitlines()
    assert first.endswith(
        "PartitionCount: 4\tReplicationFactor: 3\tConfigs: min.insync.replicas=2,retention.ms=1000"
    )
    assert "\tLeader: 1\tReplicas: 1,2,3\tIsr: 1,2,3\t" in second
    assert "\tLeader: none\t" in last


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        (Filters(), [0, 1, 2, 3]),
        (Filters(under_replicated=True), [1, 2, 3]),
        (Filters(unavailable=True), [3]),
        (Filters(under_min_isr=True), [2, 3]),
        (Filters(at_min_isr=True), [1]),
        (Filters(at_min_isr=True, unavailable=True), [1, 3]),
    ],
)
def test_filters_show_only_the_partitions_they_find(filters: Filters, found: list[int]) -> None:
    """TP-4: without the topics' own lines."""
    described = [(ONE, DEFAULTS), (THREE, OWN)]
    if any(filters):
        lines = describe_text(described, filters).splitlines()
        ours = [line for line in lines if "Topic: three" in line]
        assert [int(line.split("Partition: ")[1].split("\t")[0]) for line in ours] == found
        assert all(line.startswith("\t") for line in lines)
    values = {topic["topic"]: topic for topic in describe_values(described, filters)}
    assert [each["partition"] for each in values["three"]["partitions"]] == found


def test_json_has_the_same_facts() -> None:
    (topic,) = describe_values([(THREE, OWN)], Filters(unavailable=True))
    assert topic == {
        "topic": "three",
        "topic_id": uuid_text(TOPIC_ID),
        "internal": False,
        "replication_factor": 3,
        "configs": {"min.insync.replicas": "2", "retention.ms": "1000"},
        "partitions": [
            {
                "partition": 3,
                "leader": None,
                "leader_epoch": 4,
                "replicas": [1, 2, 3],
                "isr": [1],
            }
        ],
    }


def test_a_terminal_gets_a_table() -> None:
    output = StringIO()
    console = Console(file=output, width=80, color_system=None, highlight=False)
    show_topics([(ONE, DEFAULTS), (THREE, OWN)], Filters(), console)
    text = output.getvalue()
    assert "three  4 partitions, 3 replicas, id AAECAwQFBgcICQoLDA0ODw" in text
    assert "retention.ms=1000" in text
    assert "test  1 partition, 1 replica," in text
    show_topics([(ONE, DEFAULTS)], Filters(unavailable=True), console)
    assert output.getvalue().endswith("No such partition.\n")


def test_without_a_leader_a_partition_is_below_any_minimum() -> None:
    """TP-4: as Kafka counts, whatever its ISR still names."""
    lost = TopicDescription("t", TOPIC_ID, False, (PartitionView(0, -1, 4, (1, 2), (1, 2), ()),))
    assert Filters(under_min_isr=True).of(lost, OWN) == [*lost.partitions]
    assert Filters(at_min_isr=True).of(lost, OWN) == [*lost.partitions]


def test_what_is_on_the_move_counts_with_the_replicas_that_it_had() -> None:
    """TP-4, RE-13"""
    moved = TopicDescription("t", TOPIC_ID, False, (PartitionView(0, 1, 4, (3, 2, 1), (1, 2), ()),))
    moving = {TopicPartition("t", 0): Reassignment((3, 2, 1), (3,), (1,))}
    under = Filters(under_replicated=True)
    assert under.of(moved, OWN) == [*moved.partitions]
    assert under.of(moved, OWN, moving) == []
    topic, partition = describe_text([(moved, OWN)], Filters(), moving).splitlines()
    assert "\tReplicationFactor: 2\t" in topic
    assert partition == (
        "\tTopic: t\tPartition: 0\tLeader: 1\tReplicas: 3,2,1\tIsr: 1,2\tAdding Replicas: 3\t"
        "Removing Replicas: 1\tElr: N/A\tLastKnownElr: N/A"
    )
    (values,) = describe_values([(moved, OWN)], Filters(), moving)
    assert values["replication_factor"] == 2
    assert values["partitions"][0]["adding_replicas"] == [3]
    assert values["partitions"][0]["removing_replicas"] == [1]
