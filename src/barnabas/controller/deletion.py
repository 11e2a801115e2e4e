"""Deletion of topics: first their leaders and replicas go, then their nodes.

As in Kafka the replicas go offline one after the other, until there is no leader and one member is
left in the ISR.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from barnabas.cluster.image import NEVER_LED, NO_LEADER, TopicImage
from barnabas.cluster.store import Delete
from barnabas.controller.decision import Decision
from barnabas.controller.draft import Draft
from barnabas.controller.leader_election import without
from barnabas.types import TopicPartition


def abandon(draft: Draft, topics: Sequence[TopicImage]) -> Decision:
    """Remove the leaders; live brokers delete their replicas. The image keeps the topics."""
    for topic in topics:
        draft.take_up(topic)
        for number, partition in topic.partitions.items():
            if partition.partition_epoch == NEVER_LED or partition.leader == NO_LEADER:
                continue
            for replica in partition.replicas:
                if replica in partition.isr:
                    partition = without(partition, replica, draft.epoch)
                    draft.write(TopicPartition(topic.name, number), partition)
    stop_replicas(draft, topics, draft.brokers)
    return draft.removal([topic.name for topic in topics])


def stop_replicas(draft: Draft, topics: Iterable[TopicImage], broker_ids: Iterable[int]) -> None:
    """Have these brokers delete their replicas of the topics."""
    topics = list(topics)
    for broker_id in broker_ids:
        for topic in topics:
            for number, partition in topic.partitions.items():
                if broker_id in partition.replicas:
                    draft.stop(broker_id, TopicPartition(topic.name, number), delete=True)


def nodes_gone(draft: Draft, names: Sequence[str], paths: Iterable[str]) -> Decision:
    """Remove the nodes, as every replica is deleted, and the topics from the image."""
    draft.operate(Delete(path) for path in paths)
    return draft.forgotten(names)
