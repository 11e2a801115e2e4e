"""Describes topics and their partitions for `/api/topics`. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from barnabas.client.admin.admin import TopicDescription
from barnabas.client.admin.replica_admin import ReplicaEnd
from barnabas.client.view import PartitionView
from barnabas.console.query import Paging, in_order
from barnabas.console.rates import Growth, total
from barnabas.console.shapes import PartitionRow, Replica, TopicRow, Topics
from barnabas.console.snapshot import ClusterLook, DiskLook
from barnabas.types import TopicPartition

Ends = Mapping[TopicPartition, Mapping[int, ReplicaEnd]]
"""The log end offsets of replicas, by broker. Brokers that did not answer are omitted."""


class Sources(NamedTuple):
    """Holds what several kinds of polls have found out about topics."""

    look: ClusterLook
    disks: DiskLook
    growth: Growth


def topic_row(topic: TopicDescription, known: Sources) -> TopicRow:
    """Return the row of one topic."""
    names = [TopicPartition(topic.name, each.partition) for each in topic.partitions]
    look, sizes = known.look, known.disks.sizes
    return TopicRow(
        name=topic.name,
        is_internal=topic.is_internal,
        partitions=len(names),
        replication_factor=max((len(each.replicas) for each in topic.partitions), default=0),
        leaderless=sum(each.leader < 0 for each in topic.partitions),
        under_replicated=sum(map(is_under_replicated, topic.partitions)),
        records=total(
            look.ends[name] - look.starts[name]
            for name in names
            if name in look.ends and name in look.starts
        ),
        size=total(size for name in names for size in sizes.get(name, {}).values()),
        records_in=known.growth.of_topic(topic.name),
    )


def is_under_replicated(partition: PartitionView) -> bool:
    """Return whether any replica of the partition is out of sync."""
    return len(partition.isr) < len(partition.replicas)


_KEYS: Final[Mapping[str, Callable[[TopicRow], Any]]] = {
    "name": lambda row: row["name"],
    "partitions": lambda row: row["partitions"],
    "records": lambda row: row["records"],
    "size": lambda row: row["size"],
    "rate": lambda row: row["records_in"],
}
SORTS: Final = tuple(_KEYS)


def topic_list(known: Sources, wanted: Paging, *, with_internal: bool) -> Topics:
    """Return one page of topics."""
    rows = [
        topic_row(topic, known)
        for _, topic in sorted(known.look.topics.items())
        if wanted.search in topic.name.casefold() and (with_internal or not topic.is_internal)
    ]
    rows = in_order(rows, _KEYS[wanted.sort], descending=wanted.descending)
    return Topics(topics=list(wanted.rows(rows)), matching=len(rows), page=wanted.page)


def partition_rows(topic: TopicDescription, known: Sources, ends: Ends) -> list[PartitionRow]:
    """Return a row for each partition of a topic."""
    return [
        _partition_row(TopicPartition(topic.name, each.partition), each, known, ends)
        for each in topic.partitions
    ]


def _partition_row(
    name: TopicPartition, view: PartitionView, known: Sources, ends: Ends
) -> PartitionRow:
    look, live = known.look, known.look.live
    sizes, own_ends = known.disks.sizes.get(name, {}), ends.get(name, {})

    def replica(broker: int) -> Replica:
        end = own_ends.get(broker)
        return Replica(
            broker=broker,
            is_leader=broker == view.leader,
            in_sync=broker in view.isr,
            is_alive=broker in live and broker not in view.offline,
            end=None if end is None else end.end_offset,
            size=sizes.get(broker),
        )

    return PartitionRow(
        partition=view.partition,
        leader=None if view.leader < 0 else view.leader,
        leader_epoch=None if view.leader_epoch < 0 else view.leader_epoch,
        replicas=[replica(broker) for broker in view.replicas],
        start=look.starts.get(name),
        high_watermark=look.ends.get(name),
        size=total(sizes.values()),
        records_in=known.growth.of_partition(name),
    )
