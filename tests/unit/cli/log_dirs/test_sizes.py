"""The size of a topic counts each partition once, at its leader."""

from __future__ import annotations

from barnabas.cli.log_dirs.sizes import broker_sizes, topic_sizes
from barnabas.client.admin.admin import LogDirDescription, ReplicaSize, TopicDescription
from barnabas.client.view import PartitionView
from barnabas.types import TopicPartition


def directory(**sizes: int) -> LogDirDescription:
    replicas = {
        TopicPartition(name[0], int(name[1])): ReplicaSize(size, 0, name.endswith("_moving"))
        for name, size in sizes.items()
    }
    return LogDirDescription("/data", None, replicas, -1, -1)


def topic(name: str, *leaders: int) -> TopicDescription:
    brokers = (1, 2)
    views = [
        PartitionView(at, leader, 0, brokers, brokers, ()) for at, leader in enumerate(leaders)
    ]
    return TopicDescription(name, bytes(16), False, tuple(views))


def test_each_partition_counts_once() -> None:
    directories = {
        1: [directory(t0=100, t1=7), directory(t0_moving=50)],
        2: [directory(t0=90, t1=8, u0=5)],
    }
    topics = [topic("t", 1, 2), topic("u", -1), topic("unknown", 1)]
    assert topic_sizes(directories, topics) == {"t": 108, "u": 5}
    assert broker_sizes(directories) == {1: 157, 2: 103}
    assert topic_sizes({}, topics) == {}
