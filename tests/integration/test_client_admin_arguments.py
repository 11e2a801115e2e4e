"""What `Admin` takes: one or several alike, values that are not text, and what it refuses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import barnabas
from barnabas.client import ConfigOperation, ConfigResource, NewTopic, SyncAdmin, TopicPartition
from barnabas.client.admin.admin import BROKER, TOPIC
from barnabas.client.offsets import LATEST

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.secured


@pytest.fixture(scope="module")
def admin() -> Iterator[SyncAdmin]:
    with (
        barnabas.Broker(config={"num.partitions": 3}) as broker,
        SyncAdmin(broker.bootstrap_servers) as admin,
    ):
        yield admin


def test_a_name_is_a_topic_with_the_brokers_defaults(admin: SyncAdmin) -> None:
    admin.create_topics("one")
    admin.create_topics(["two", NewTopic("three", 1)])
    admin.create_topics(NewTopic("four", 2))
    topics = admin.describe_topics(["one", "two", "three", "four"])
    counts = {topic.name: len(topic.partitions) for topic in topics}
    assert counts == {"one": 3, "two": 3, "three": 1, "four": 2}
    assert [topic.name for topic in admin.describe_topics("one")] == ["one"]
    admin.delete_topics("one")
    admin.delete_topics(("two", "three", "four"))
    assert admin.list_topics() == []


def test_configs_need_not_be_text(admin: SyncAdmin) -> None:
    configs: dict[str, Any] = {
        "retention.ms": 3_600_000,
        "preallocate": True,
        "min.cleanable.dirty.ratio": 0.25,
        "cleanup.policy": ["compact", "delete"],
    }
    admin.create_topics(NewTopic("typed", configs=configs))
    assert values(admin, configs) == {
        "retention.ms": "3600000",
        "preallocate": "true",
        "min.cleanable.dirty.ratio": "0.25",
        "cleanup.policy": "compact,delete",
    }
    resource = ConfigResource(TOPIC, "typed")
    admin.alter_configs(resource, {"retention.ms": 7, "preallocate": None})
    assert values(admin, ["retention.ms", "preallocate"]) == {
        "retention.ms": "7",
        "preallocate": "false",
    }
    admin.alter_configs(resource, ConfigOperation("retention.ms", value="8"))
    assert values(admin, "retention.ms") == {"retention.ms": "8"}


def values(admin: SyncAdmin, names: Any) -> dict[str, str | None]:
    entries = admin.describe_configs(ConfigResource(TOPIC, "typed"), names)
    return {entry.name: entry.value for entry in entries}


def test_one_partition_or_group_stands_for_a_list_of_one(admin: SyncAdmin) -> None:
    admin.create_topics("readers")
    partition = TopicPartition("readers", 0)
    admin.alter_group_offsets("g", {partition: 0, TopicPartition("readers", 1): 0})
    assert list(admin.list_group_offsets("g", partition)) == [partition]
    assert list(admin.list_group_offsets("g", {partition})) == [partition]
    admin.delete_group_offsets("g", partition)
    assert list(admin.list_group_offsets("g")) == [TopicPartition("readers", 1)]
    assert list(admin.describe_groups("g")) == ["g"]
    assert list(admin.describe_producers(partition)) == [partition]
    assert admin.list_partition_reassignments(partition) == {}
    assert [group.group_id for group in admin.list_groups(states="Empty")] == ["g"]
    admin.delete_groups("g")
    assert admin.list_groups() == []


ANY_TOPIC: Any = NewTopic  # of any types
A_TOPIC = ConfigResource(TOPIC, "t")
A_PARTITION = TopicPartition("t", 0)


@pytest.mark.parametrize(
    ("call", "problem"),
    [
        (lambda admin: admin.create_topics(5), "topics: must be a sequence, not int"),
        (lambda admin: admin.create_topics([5]), "topics: each must be a NewTopic or a name"),
        (lambda admin: admin.create_topics(ANY_TOPIC(5)), "topics: must be text, not int"),
        (lambda admin: admin.create_topics(ANY_TOPIC("t", "3")), "num_partitions: must be an int"),
        (lambda admin: admin.create_topics(ANY_TOPIC("t", 1, "3")), "replication_factor: must be"),
        (
            lambda admin: admin.create_topics(ANY_TOPIC("t", configs=["a"])),
            "configs: must be a map",
        ),
        (
            lambda admin: admin.create_topics(ANY_TOPIC("t", configs={"a": None})),
            "configs: the value of a must be text, a number, True, False or a list",
        ),
        (lambda admin: admin.create_topics(ANY_TOPIC("t", assignment=[1])), "assignment: must map"),
        (lambda admin: admin.delete_topics(None), "names: must be a sequence, not NoneType"),
        (lambda admin: admin.describe_topics([b"t"]), "names: must be text, not bytes"),
        (lambda admin: admin.create_partitions("t", "3"), "total_count: must be an int"),
        (lambda admin: admin.create_partitions("t", 3, [1]), "assignments: must be a sequence"),
        (lambda admin: admin.describe_configs("t"), "resource: must be a ConfigResource, not str"),
        (lambda admin: admin.alter_configs(A_TOPIC, "a=b"), "operations: must be a sequence"),
        (lambda admin: admin.alter_configs(A_TOPIC, ["a"]), "operations: each must be a ConfigO"),
        (lambda admin: admin.list_offsets([A_PARTITION]), "timestamps: must be a mapping"),
        (lambda admin: admin.list_offsets({A_PARTITION: "0"}), "timestamps: must be an int"),
        (lambda admin: admin.list_offsets({"t": LATEST}), "timestamps: must be a TopicPartition"),
        (lambda admin: admin.delete_records({A_PARTITION: None}), "offsets: must be an int"),
        (lambda admin: admin.replica_ends({A_PARTITION: 1}), "replicas: must be a sequence"),
        (lambda admin: admin.alter_partition_reassignments({A_PARTITION: ["1"]}), "replicas: must"),
        (lambda admin: admin.elect_leaders(0, "t"), "partitions: must be a sequence, not str"),
        (lambda admin: admin.describe_groups(7), "group_ids: must be a sequence, not int"),
        (lambda admin: admin.list_group_offsets(["g"]), "group_id: must be text, not list"),
        (lambda admin: admin.delete_group_offsets("g", ["t"]), "partitions: must be a TopicP"),
        (lambda admin: admin.list_transactions(producer_ids="1"), "producer_ids: must be a seq"),
        (lambda admin: admin.fence_producers({1}), "transactional_ids: must be text, not int"),
    ],
)
def test_a_wrong_type_names_the_argument(
    admin: SyncAdmin, call: Callable[[Any], object], problem: str
) -> None:
    with pytest.raises(TypeError, match=problem):
        call(admin)


def test_nothing_is_left_of_what_was_refused(admin: SyncAdmin) -> None:
    with pytest.raises(TypeError):
        admin.create_topics(["good", ANY_TOPIC])
    assert "good" not in admin.list_topics()
    assert admin.describe_configs(ConfigResource(BROKER, "0"), "num.partitions")[0].value == "3"
