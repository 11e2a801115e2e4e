"""Elects the leader of a partition: when the partition is created, after a failure, or on request.

The leader is the first eligible replica in the assigned order. When a partition is created, every
live replica is eligible, because there are no records. Later, only live replicas that are in sync
are eligible (RE-10), because only they have every acknowledged record. If the log directory of a
replica has failed, the replica counts as dead, even if its broker is live. The ISR never becomes
empty: the partition waits for the last members. `Draft.lead` in `decision_draft` decides whether to
elect a leader from the ISR, to elect one that is not in the ISR, or to wait. It calls
`lost_log_ends` to find out whether the members of the ISR can be trusted. Each function returns the
partition as it is after one write, with the next partition epoch and the next leader epoch.
"""

from __future__ import annotations

from collections.abc import Container

from barnabas.cluster.image import NEVER_LED, NO_LEADER, PartitionImage, TopicImage
from barnabas.named_tuple import NamedTuple


class Settings(NamedTuple):
    """The cluster's defaults for settings that may be overridden in a topic."""

    min_insync_replicas: int = 1
    is_unclean_allowed: bool = False

    def min_insync_of(self, topic: TopicImage) -> int:
        own = topic.config.get("min.insync.replicas", "").strip()
        # If the value was written by hand, it may not be a number. Brokers ignore such a value,
        # too.
        return int(own) if own.isdecimal() else self.min_insync_replicas

    def is_unclean_allowed_for(self, topic: TopicImage) -> bool:
        own = topic.config.get("unclean.leader.election.enable")
        return self.is_unclean_allowed if own is None else own.strip().lower() == "true"


def succeed(
    partition: PartitionImage, leader: int, isr: tuple[int, ...], controller_epoch: int
) -> PartitionImage:
    """Return the partition in a new leader epoch with this leader, which may be the old one."""
    # `_replace` would take three times as long, and thousands of partitions are affected when a
    # broker fails.
    return PartitionImage(
        leader,
        partition.leader_epoch + 1,
        isr,
        partition.replicas,
        partition.partition_epoch + 1,
        controller_epoch,
        partition.offline_replicas,
        partition.adding,
        partition.removing,
    )


def elect(
    partition: PartitionImage, live: Container[int], controller_epoch: int
) -> PartitionImage | None:
    """Return the partition with a new leader.

    The result is None if no new leader is needed or no replica is eligible.
    """
    offline = partition.offline_replicas
    # If the leader is live and its log directory works, it remains the leader (KIP-112).
    if partition.leader in live and partition.leader not in offline:
        return None
    is_new = partition.partition_epoch == NEVER_LED
    # RE-10: once there are records, only the members of the ISR have every acknowledged record.
    candidates = partition.replicas if is_new else partition.isr
    isr = tuple([each for each in candidates if each in live and each not in offline])
    if not isr:
        return None
    return succeed(partition, _first(partition.replicas, isr), isr, controller_epoch)


def elect_unclean(
    partition: PartitionImage, live: Container[int], controller_epoch: int
) -> PartitionImage | None:
    """Make the first live replica the leader and only ISR member (RE-11).

    Return None if no replica is live.
    """
    for replica in partition.replicas:
        if replica in live and replica not in partition.offline_replicas:
            return succeed(partition, replica, (replica,), controller_epoch)
    return None


def prefer(
    partition: PartitionImage, live: Container[int], controller_epoch: int
) -> PartitionImage | None:
    """Make the first replica the leader. Return None if it is not live or not in sync."""
    preferred = partition.replicas[0]
    # KIP-460: electing the preferred leader is never unclean.
    if preferred not in live or preferred in partition.offline_replicas:
        return None
    if preferred not in partition.isr:
        return None
    return succeed(partition, preferred, partition.isr, controller_epoch)


def hand_over(
    partition: PartitionImage, live: Container[int], controller_epoch: int
) -> PartitionImage | None:
    """Make another ISR member the leader, and remove members that are not in `live`.

    Return None if no other member can lead.
    """
    isr = tuple([replica for replica in partition.isr if replica in live])
    leader = _first(partition.replicas, isr, but_not=partition.offline_replicas)
    if leader == NO_LEADER:
        return None
    return succeed(partition, leader, isr, controller_epoch)


def without(partition: PartitionImage, broker_id: int, controller_epoch: int) -> PartitionImage:
    """Remove this member from the ISR, unless it is the last member.

    If the member was the leader, the partition has no leader afterwards.
    """
    leader = NO_LEADER if partition.leader == broker_id else partition.leader
    isr = tuple([replica for replica in partition.isr if replica != broker_id])
    return succeed(partition, leader, isr or partition.isr, controller_epoch)


def leader_last(partition: PartitionImage, leaving: list[int]) -> list[int]:
    """Return the replicas in the order in which to remove them from the ISR.

    The leader comes last, because one member may have to remain.
    """
    if len(leaving) <= 1:
        return leaving
    return sorted(leaving, key=lambda replica: replica == partition.leader)


def _first(replicas: tuple[int, ...], isr: Container[int], but_not: Container[int] = ()) -> int:
    for replica in replicas:
        if replica in isr and replica not in but_not:
            return replica
    return NO_LEADER
