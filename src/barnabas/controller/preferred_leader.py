"""Elects preferred leaders, either on request (KIP-460) or by automatic rebalancing.

The preferred leader of a partition is its first replica. If every partition is led by its preferred
leader, the load is distributed as planned. Partitions that are being deleted or moved are left
alone.
"""

from __future__ import annotations

from collections.abc import Iterable

from barnabas.cluster.image import NEVER_LED, NO_LEADER, PartitionImage
from barnabas.controller.decision_draft import Draft
from barnabas.controller.leader_election import prefer
from barnabas.errors import (
    ElectionNotNeeded,
    EligibleLeadersNotAvailable,
    KafkaError,
    PreferredLeaderNotAvailable,
    UnknownTopicOrPartition,
)
from barnabas.named_tuple import NamedTuple
from barnabas.types import TopicPartition


class _Balance(NamedTuple):
    """The partitions whose preferred leader is a given broker, and those that it does not lead."""

    total: list[int]
    not_led: list[TopicPartition]


def elect_preferred(draft: Draft, name: TopicPartition) -> KafkaError | None:
    """Elect the first replica, or return an error if the election is impossible or unnecessary."""
    partition = draft.get(name)
    if partition is None:
        return UnknownTopicOrPartition(f"partition {name} does not exist")
    if partition.leader == partition.replicas[0]:
        return ElectionNotNeeded(f"partition {name} is already led by its preferred replica")
    elected = _elect(draft, partition)
    if elected is None:
        return PreferredLeaderNotAvailable(
            f"broker {partition.replicas[0]} is not live or not in sync for {name}"
        )
    draft.change(name, elected)
    return None


def elect_any(draft: Draft, name: TopicPartition) -> KafkaError | None:
    """Elect any live replica, whether or not it is in sync, unless there is a live leader."""
    partition = draft.get(name)
    if partition is None:
        return UnknownTopicOrPartition(f"partition {name} does not exist")
    # KIP-460: an unclean election is possible only if the partition has no leader.
    if draft.has_leader(partition):
        return ElectionNotNeeded(f"partition {name} has a leader")
    if draft.lead(name, unclean=True):
        return None
    return EligibleLeadersNotAvailable(f"no replica of {name} is live")


def rebalance(draft: Draft, max_imbalance_percent: int) -> None:
    """Elect preferred leaders for each broker that leads too few of its preferred partitions."""
    for balance in _balances(draft).values():
        # Do not move leaders unless the percentage exceeds leader.imbalance.per.broker.percentage.
        if 100 * len(balance.not_led) <= max_imbalance_percent * len(balance.total):
            continue
        for name in balance.not_led:
            partition = draft.get(name)
            assert partition is not None
            if partition.adding or partition.removing:
                continue
            elected = _elect(draft, partition)
            if elected is not None:
                draft.change(name, elected)


def all_partitions(draft: Draft) -> Iterable[TopicPartition]:
    """Yield all partitions, except those of topics that are being deleted."""
    for topic in draft.topics():
        for number in topic.partitions:
            yield TopicPartition(topic.name, number)


def _balances(draft: Draft) -> dict[int, _Balance]:
    balances: dict[int, _Balance] = {}
    for topic in draft.topics():
        for number, partition in topic.partitions.items():
            preferred = partition.replicas[0]
            balance = balances.setdefault(preferred, _Balance([], []))
            balance.total.append(number)
            if partition.leader != preferred:
                balance.not_led.append(TopicPartition(topic.name, number))
    return balances


def _elect(draft: Draft, partition: PartitionImage) -> PartitionImage | None:
    if partition.partition_epoch == NEVER_LED or partition.leader == NO_LEADER:
        return None  # if the first replica could lead as an ISR member, it already would
    return prefer(partition, draft.electable, draft.epoch)
