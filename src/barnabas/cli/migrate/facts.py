"""Defines what the brokers of a cluster report to `barnabas migrate`. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from barnabas.client.admin.admin import TopicDescription
from barnabas.client.channel import BrokerAddress
from barnabas.client.view import PartitionView
from barnabas.types import TopicPartition

KAFKA, BARNABAS = "kafka", "barnabas"
UNKNOWN = "unknown"

Configs = Mapping[str, str | None]
"""The configs that are not defaults. A secret value is None."""

Versions = Mapping[int, tuple[int, int]]
"""The range of versions of each API, by its key."""


class BrokerFacts(NamedTuple):
    """Contains what one live broker reports about itself."""

    broker_id: int
    node: BrokerAddress
    kind: str  # KAFKA or BARNABAS
    versions: Versions = {}
    features: tuple[str, ...] = ()
    configs: Configs = {}
    protocol: str = ""  # inter.broker.protocol.version, even if it is the default


class ClusterFacts(NamedTuple):
    """Contains what a cluster reports. `topic_configs` has each topic's own configs."""

    cluster_id: str
    controller_id: int
    brokers: Mapping[int, BrokerFacts]
    topics: tuple[TopicDescription, ...] = ()
    topic_configs: Mapping[str, Configs] = {}
    min_isr: Mapping[str, int] = {}
    compacted: frozenset[str] = frozenset()
    moving: tuple[TopicPartition, ...] = ()
    tokens: int = 0  # delegation tokens

    def is_compacted(self, topic: str) -> bool:
        return topic in self.compacted

    def partitions(self) -> Iterator[tuple[TopicPartition, PartitionView]]:
        for topic in self.topics:
            for each in topic.partitions:
                yield TopicPartition(topic.name, each.partition), each

    def kind_of(self, broker_id: int) -> str:
        """Return the kind of a broker, or UNKNOWN if it is not alive."""
        broker = self.brokers.get(broker_id)
        return UNKNOWN if broker is None else broker.kind

    def broker_ids(self) -> list[int]:
        """Return the brokers that are alive or have replicas, ascending."""
        named = {each for _, view in self.partitions() for each in view.replicas}
        return sorted(named | self.brokers.keys())

    def led_by(self, broker_id: int) -> list[TopicPartition]:
        return [name for name, view in self.partitions() if view.leader == broker_id]

    def replicas_on(self, broker_id: int) -> list[TopicPartition]:
        return [name for name, view in self.partitions() if broker_id in view.replicas]

    def out_of_sync(self) -> list[TopicPartition]:
        return [name for name, view in self.partitions() if set(view.isr) != set(view.replicas)]
