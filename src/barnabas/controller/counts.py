"""Counts partitions for the controller metrics that Kafka has."""

from __future__ import annotations

from barnabas.cluster.image import TopicImage
from barnabas.controller.decision_draft import Draft
from barnabas.controller.lost_log_ends import is_in_doubt, waits_for_ends
from barnabas.named_tuple import NamedTuple
from barnabas.types import TopicPartition


class Counts(NamedTuple):
    """Counts over all topics that are not being deleted, named after Kafka's metrics."""

    topics: int  # GlobalTopicCount
    partitions: int  # GlobalPartitionCount
    offline_partitions: int  # OfflinePartitionsCount
    preferred_imbalance: int  # PreferredReplicaImbalanceCount


def count(draft: Draft) -> Counts:
    """Compute all counts in a single pass over the partitions."""
    topics = partitions = imbalance = 0
    for topic in draft.topics():
        topics += 1
        partitions += len(topic.partitions)
        imbalance += sum(each.leader != each.replicas[0] for each in topic.partitions.values())
    return Counts(topics, partitions, len(offline(draft)), imbalance)


def offline(draft: Draft) -> frozenset[TopicPartition]:
    """Return the partitions that are not led by a live broker."""
    return frozenset(
        TopicPartition(topic.name, number)
        for topic in draft.topics()
        for number, partition in topic.partitions.items()
        if not draft.has_leader(partition)
    )


def ends_wanted(draft: Draft) -> frozenset[TopicPartition]:
    """Return the partitions that need the log ends of all replicas to elect a leader."""
    if not any(broker.may_have_lost for broker in draft.brokers.values()):
        # Usually, all brokers are known to have their records, so no partition has to be checked.
        return frozenset()
    return frozenset(name for topic in draft.topics() for name in _waiting(draft, topic))


def _waiting(draft: Draft, topic: TopicImage) -> list[TopicPartition]:
    waiting = [
        TopicPartition(topic.name, number)
        for number, partition in topic.partitions.items()
        if is_in_doubt(partition, draft.brokers)
    ]
    return waiting if waiting and waits_for_ends(topic, draft.settings) else []
