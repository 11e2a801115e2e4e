"""Formats the output of `topics describe`, as values or exactly as Kafka 3.9 prints it (TP-4).

    Topic: test<TAB>TopicId: ...<TAB>PartitionCount: 1<TAB>ReplicationFactor: 1<TAB>Configs: k=v,k=v
    <TAB>Topic: test<TAB>Partition: 0<TAB>Leader: 0<TAB>Replicas: 0<TAB>Isr: 0<TAB>Elr: N/A<TAB>...

With a filter, only matching partitions are shown, without their topics' lines. A partition being
reassigned counts with its former replicas; its line lists the added and removed ones. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from barnabas.client.admin.admin import DEFAULT_CONFIG, ConfigEntry, TopicDescription
from barnabas.client.admin.partition_admin import Reassignment
from barnabas.client.view import PartitionView
from barnabas.types import TopicPartition, uuid_text

Described = Sequence[tuple[TopicDescription, Sequence[ConfigEntry]]]
Moving = Mapping[TopicPartition, Reassignment]

NOTHING_MOVES: Moving = MappingProxyType({})

_MIN_ISR = "min.insync.replicas"


class Filters(NamedTuple):
    """Selects the partitions that match any filter, or all if no filter is set."""

    under_replicated: bool = False
    unavailable: bool = False
    under_min_isr: bool = False
    at_min_isr: bool = False

    def finds(self, partition: PartitionView, replicas: int, min_isr: int) -> bool:
        in_sync, is_led = len(partition.isr), partition.leader >= 0
        return (
            not any(self)
            or (self.under_replicated and in_sync < replicas)
            or (self.unavailable and not is_led)
            # To Kafka, a partition without a leader is below its minimum, whatever its ISR.
            or (self.under_min_isr and (in_sync < min_isr or not is_led))
            or (self.at_min_isr and in_sync == min_isr)
        )

    def of(
        self,
        topic: TopicDescription,
        configs: Iterable[ConfigEntry],
        moving: Moving = NOTHING_MOVES,
    ) -> list[PartitionView]:
        """Return the partitions of a topic that should be shown."""
        given = [config.value for config in configs if config.name == _MIN_ISR]
        min_isr = int(given[0]) if given and given[0] is not None else 1
        return [
            partition
            for partition in topic.partitions
            if self.finds(partition, _replica_count(topic, partition, moving), min_isr)
        ]


def own_configs(configs: Iterable[ConfigEntry]) -> dict[str, str]:
    """Return the configs that do not come from Kafka's defaults, but are set on the topic or in a
    broker's file.
    """
    return {
        config.name: "" if config.value is None else config.value
        for config in configs
        if config.source != DEFAULT_CONFIG
    }


def replication_factor(topic: TopicDescription, moving: Moving = NOTHING_MOVES) -> int:
    return _replica_count(topic, topic.partitions[0], moving) if topic.partitions else 0


def describe_text(described: Described, filters: Filters, moving: Moving = NOTHING_MOVES) -> str:
    """Return the lines that Kafka prints, each ending in a newline."""
    lines = []
    for topic, configs in described:
        if not any(filters):
            settings = ",".join(f"{name}={value}" for name, value in own_configs(configs).items())
            lines.append(
                f"Topic: {topic.name}\tTopicId: {uuid_text(topic.topic_id)}\t"
                f"PartitionCount: {len(topic.partitions)}\t"
                f"ReplicationFactor: {replication_factor(topic, moving)}\tConfigs: {settings}"
            )
        for partition in filters.of(topic, configs, moving):
            # -1 on the wire.
            leader = "none" if partition.leader < 0 else partition.leader
            lines.append(
                f"\tTopic: {topic.name}\tPartition: {partition.partition}\tLeader: {leader}\t"
                f"Replicas: {_ids(partition.replicas)}\tIsr: {_ids(partition.isr)}\t"
                f"{_move_text(moving.get(TopicPartition(topic.name, partition.partition)))}"
                "Elr: N/A\tLastKnownElr: N/A"
            )
    return "".join(f"{line}\n" for line in lines)


def describe_values(
    described: Described, filters: Filters, moving: Moving = NOTHING_MOVES
) -> list[dict[str, Any]]:
    """Return the same information as values for JSON. A filter omits topics without matching
    partitions.
    """
    values = []
    for topic, configs in described:
        partitions = filters.of(topic, configs, moving)
        if any(filters) and not partitions:
            continue
        values.append(
            {
                "topic": topic.name,
                "topic_id": uuid_text(topic.topic_id),
                "internal": topic.is_internal,
                "replication_factor": replication_factor(topic, moving),
                "configs": own_configs(configs),
                "partitions": [
                    {
                        "partition": partition.partition,
                        "leader": None if partition.leader < 0 else partition.leader,
                        "leader_epoch": partition.leader_epoch,
                        "replicas": list(partition.replicas),
                        "isr": list(partition.isr),
                        **_move_values(moving.get(TopicPartition(topic.name, partition.partition))),
                    }
                    for partition in partitions
                ],
            }
        )
    return values


def _replica_count(topic: TopicDescription, partition: PartitionView, moving: Moving) -> int:
    """Return the number of replicas, not counting those that are being added."""
    move = moving.get(TopicPartition(topic.name, partition.partition))
    return len(partition.replicas) if move is None else len(move.replicas) - len(move.adding)


def _move_text(move: Reassignment | None) -> str:
    if move is None:
        return ""
    return f"Adding Replicas: {_ids(move.adding)}\tRemoving Replicas: {_ids(move.removing)}\t"


def _move_values(move: Reassignment | None) -> dict[str, list[int]]:
    if move is None:
        return {}
    return {"adding_replicas": list(move.adding), "removing_replicas": list(move.removing)}


def _ids(brokers: Iterable[int]) -> str:
    return ",".join(map(str, brokers))
