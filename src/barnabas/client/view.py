"""Maintains a client's view of brokers, topics and leaders from Metadata responses. Pure.

A view is never modified, only replaced. Each response increases the generation by one. If two
responses disagree about a partition, the higher leader epoch wins (KIP-320), so that a lagging
broker cannot send clients back to a deposed leader.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import NamedTuple

from barnabas.client.channel import BrokerAddress
from barnabas.client.errors import UnknownPartition, broker_error
from barnabas.client.producer.partitioner import Partitions
from barnabas.errors import KafkaError
from barnabas.protocol.messages.metadata import MetadataResponse, MetadataResponseTopic
from barnabas.types import TopicPartition


class PartitionView(NamedTuple):
    partition: int
    leader: int  # broker id; -1: none
    leader_epoch: int  # -1: unknown
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    offline: tuple[int, ...]


class TopicView(NamedTuple):
    name: str
    topic_id: bytes  # 16 bytes; zeros: unknown
    is_internal: bool
    partitions: Mapping[int, PartitionView]  # ascending
    choice: Partitions  # the partitions in the partitioner's form


class ClusterView(NamedTuple):
    generation: int = 0
    cluster_id: str | None = None
    controller_id: int = -1
    nodes: Mapping[int, BrokerAddress] = {}
    topics: Mapping[str, TopicView] = {}
    errors: Mapping[str, int] = {}  # topic -> error code, for topics without a view

    def leader(self, topic_partition: TopicPartition) -> BrokerAddress | None:
        """Return the leader of the partition, or None if there is no leader or it is unknown."""
        partition = self._partition(topic_partition)
        return None if partition is None else self.nodes.get(partition.leader)

    def leader_epoch(self, topic_partition: TopicPartition) -> int:
        """Return the epoch of the partition's leader, or -1 if the epoch is unknown."""
        partition = self._partition(topic_partition)
        return -1 if partition is None else partition.leader_epoch

    def _partition(self, topic_partition: TopicPartition) -> PartitionView | None:
        topic = self.topics.get(topic_partition.topic)
        return None if topic is None else topic.partitions.get(topic_partition.partition)

    def topic_error(self, name: str) -> KafkaError | None:
        """Return the error, if any, that brokers reported for a topic that is not in the view."""
        code = self.errors.get(name, 0)
        return broker_error(code, f"topic {name!r}") if code else None

    def without(self, names: Set[str]) -> ClusterView:
        """Return the view without these topics."""
        topics = {name: known for name, known in self.topics.items() if name not in names}
        errors = {name: code for name, code in self.errors.items() if name not in names}
        return self._replace(topics=topics, errors=errors)

    def after(self, response: MetadataResponse) -> ClusterView:
        """Return the view updated by a response. Topics not in the response are unchanged."""
        generation = self.generation + 1
        topics = dict(self.topics)
        errors = dict(self.errors)
        for answer in response.topics:
            name = answer.name or ""
            errors.pop(name, None)
            if answer.error_code:
                errors[name] = answer.error_code
                topics.pop(name, None)
            else:
                topics[name] = _topic_view(answer, self.topics.get(name), generation)
        return ClusterView(
            generation=generation,
            cluster_id=response.cluster_id,
            controller_id=response.controller_id,
            nodes={
                broker.node_id: BrokerAddress(broker.node_id, broker.host, broker.port)
                for broker in response.brokers
            },
            topics=topics,
            errors=errors,
        )


def _topic_view(
    answer: MetadataResponseTopic, known: TopicView | None, generation: int
) -> TopicView:
    before: Mapping[int, PartitionView] = {}
    if known is not None and known.topic_id == answer.topic_id:
        before = known.partitions  # with another topic id, epochs restart at 0
    partitions: dict[int, PartitionView] = {}
    for partition in sorted(answer.partitions, key=lambda partition: partition.partition_index):
        number = partition.partition_index
        view = PartitionView(
            partition=number,
            leader=partition.leader_id,
            leader_epoch=partition.leader_epoch,
            replicas=tuple(partition.replica_nodes),
            isr=tuple(partition.isr_nodes),
            offline=tuple(partition.offline_replicas),
        )
        older = before.get(number)
        # Use the later response if a broker that predates KIP-320 has sent -1, which is not an
        # epoch.
        stale = older is not None and 0 <= view.leader_epoch < older.leader_epoch
        partitions[number] = older if older is not None and stale else view
    available = tuple(number for number, view in partitions.items() if view.leader >= 0)
    return TopicView(
        name=answer.name or "",
        topic_id=bytes(answer.topic_id),
        is_internal=answer.is_internal,
        partitions=partitions,
        choice=Partitions(len(partitions), available, generation),
    )


def unknown_partition(topic: TopicView, partition: int | None) -> UnknownPartition:
    """Return the error for a partition that the topic does not have."""
    return UnknownPartition(
        f"topic {topic.name!r} has partitions 0 to {len(topic.partitions) - 1}, not {partition}"
    )
