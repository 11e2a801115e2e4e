"""What `topics describe` says, as text that is Kafka 3.9's to the byte (TP-4) and as values.

    Topic: test<TAB>TopicId: ...<TAB>PartitionCount: 1<TAB>ReplicationFactor: 1<TAB>Configs: k=v,k=v
    <TAB>Topic: test<TAB>Partition: 0<TAB>Leader: 0<TAB>Replicas: 0<TAB>Isr: 0<TAB>Elr: N/A<TAB>...

With a filter only the partitions that it finds are shown, without their topics' lines. Pure.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from barnabas.client.admin import DEFAULT_CONFIG, ConfigEntry, TopicDescription
from barnabas.client.view import PartitionView

Described = Sequence[tuple[TopicDescription, Sequence[ConfigEntry]]]

_MIN_ISR = "min.insync.replicas"


class Filters(NamedTuple):
    """Which partitions to show: those that any of these finds, or all if none is set."""

    under_replicated: bool = False
    unavailable: bool = False
    under_min_isr: bool = False
    at_min_isr: bool = False

    def finds(self, partition: PartitionView, min_isr: int) -> bool:
        in_sync, replicas = len(partition.isr), len(partition.replicas)
        return (
            not any(self)
            or (self.under_replicated and in_sync < replicas)
            or (self.unavailable and partition.leader < 0)
            or (self.under_min_isr and in_sync < min_isr)
            or (self.at_min_isr and in_sync == min_isr)
        )

    def of(self, topic: TopicDescription, configs: Iterable[ConfigEntry]) -> list[PartitionView]:
        """The partitions of a topic that are to be shown."""
        given = [config.value for config in configs if config.name == _MIN_ISR]
        min_isr = int(given[0]) if given and given[0] is not None else 1
        return [partition for partition in topic.partitions if self.finds(partition, min_isr)]


def topic_id_text(topic_id: bytes) -> str:
    """Sixteen bytes as Kafka writes them: 22 characters of URL-safe base64."""
    return urlsafe_b64encode(topic_id).decode().rstrip("=")


def own_configs(configs: Iterable[ConfigEntry]) -> dict[str, str]:
    """The configs that do not have Kafka's default: set for the topic or by the broker's file."""
    return {
        config.name: "" if config.value is None else config.value
        for config in configs
        if config.source != DEFAULT_CONFIG
    }


def replication_factor(topic: TopicDescription) -> int:
    return len(topic.partitions[0].replicas) if topic.partitions else 0


def describe_text(described: Described, filters: Filters) -> str:
    """Kafka's lines, each ended by a newline."""
    lines = []
    for topic, configs in described:
        if not any(filters):
            settings = ",".join(f"{name}={value}" for name, value in own_configs(configs).items())
            lines.append(
                f"Topic: {topic.name}\tTopicId: {topic_id_text(topic.topic_id)}\t"
                f"PartitionCount: {len(topic.partitions)}\t"
                f"ReplicationFactor: {replication_factor(topic)}\tConfigs: {settings}"
            )
        for partition in filters.of(topic, configs):
            leader = "none" if partition.leader < 0 else partition.leader
            lines.append(
                f"\tTopic: {topic.name}\tPartition: {partition.partition}\tLeader: {leader}\t"
                f"Replicas: {_ids(partition.replicas)}\tIsr: {_ids(partition.isr)}\t"
                "Elr: N/A\tLastKnownElr: N/A"
            )
    return "".join(f"{line}\n" for line in lines)


def describe_values(described: Described, filters: Filters) -> list[dict[str, Any]]:
    """The same as data, for JSON; topics without a partition to show are left out of a filter."""
    values = []
    for topic, configs in described:
        partitions = filters.of(topic, configs)
        if any(filters) and not partitions:
            continue
        values.append(
            {
                "topic": topic.name,
                "topic_id": topic_id_text(topic.topic_id),
                "internal": topic.is_internal,
                "replication_factor": replication_factor(topic),
                "configs": own_configs(configs),
                "partitions": [
                    {
                        "partition": partition.partition,
                        "leader": None if partition.leader < 0 else partition.leader,
                        "leader_epoch": partition.leader_epoch,
                        "replicas": list(partition.replicas),
                        "isr": list(partition.isr),
                    }
                    for partition in partitions
                ],
            }
        )
    return values


def _ids(brokers: Iterable[int]) -> str:
    return ",".join(map(str, brokers))
