"""Election of a partition's leader: at its creation, after a failure, or on request.

The first eligible replica in the assigned order leads: at creation any live one, since there are no
records yet; later only a live one that is in sync (RE-10), because only that has everything
acknowledged. A replica whose log directory has failed counts as dead, though its broker is live.
The ISR never becomes empty: its last members are waited for. Whether to elect cleanly, from outside
the ISR or not yet is decided by `Draft.lead` in `decision_draft`, which asks `lost_log_ends` for
doubts about the members of the ISR. Each function returns the partition
one write later: with the next partition epoch, and the next leader epoch.
"""

from __future__ import annotations

from collections.abc import Container
from typing import NamedTuple

from barnabas.cluster.image import NEVER_LED, NO_LEADER, PartitionImage, TopicImage


class Settings(NamedTuple):
    """The cluster's defaults for what a topic's own configs do not set."""

    min_insync_replicas: int = 1
    is_unclean_allowed: bool = False

    def min_insync_of(self, topic: TopicImage) -> int:
        own = topic.config.get("min.insync.replicas", "").strip()
        # Written by hand it may be no number; the brokers ignore it then, too.
        return int(own) if own.isdecimal() else self.min_insync_replicas

    def is_unclean_allowed_for(self, topic: TopicImage) -> bool:
        own = topic.config.get("unclean.leader.election.enable")
        return self.is_unclean_allowed if own is None else own.strip().lower() == "true"


def succeed(
    partition: PartitionImage, leader: int, isr: tuple[int, ...], controller_epoch: int
) -> PartitionImage:
    """The partition under this leader, or under the same one in a new epoch."""
    # Not `_replace`, which takes thrice as long: a broker that fails has thousands of these.
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
    """The partition with a new leader; None: it has a live one, or no replica is eligible."""
    offline = partition.offline_replicas
    # It leads, and its log directory is there (KIP-112).
    if partition.leader in live and partition.leader not in offline:
        return None
    is_new = partition.partition_epoch == NEVER_LED
    # RE-10: once there are records, only a member of the ISR has all that was acknowledged.
    candidates = partition.replicas if is_new else partition.isr
    isr = tuple([each for each in candidates if each in live and each not in offline])
    if not isr:
        return None
    return succeed(partition, _first(partition.replicas, isr), isr, controller_epoch)


def elect_unclean(
    partition: PartitionImage, live: Container[int], controller_epoch: int
) -> PartitionImage | None:
    """The first live replica leads, alone in the ISR, whatever it lacks (RE-11); None: none is."""
    for replica in partition.replicas:
        if replica in live and replica not in partition.offline_replicas:
            return succeed(partition, replica, (replica,), controller_epoch)
    return None


def prefer(
    partition: PartitionImage, live: Container[int], controller_epoch: int
) -> PartitionImage | None:
    """The first replica leads again; None: it is not live, or not in sync."""
    preferred = partition.replicas[0]
    # KIP-460: a preferred election is never unclean.
    if preferred not in live or preferred in partition.offline_replicas:
        return None
    if preferred not in partition.isr:
        return None
    return succeed(partition, preferred, partition.isr, controller_epoch)


def hand_over(
    partition: PartitionImage, live: Container[int], controller_epoch: int
) -> PartitionImage | None:
    """Another member of the ISR leads, and those not in `live` leave it; None: there is none."""
    isr = tuple([replica for replica in partition.isr if replica in live])
    leader = _first(partition.replicas, isr, but_not=partition.offline_replicas)
    if leader == NO_LEADER:
        return None
    return succeed(partition, leader, isr, controller_epoch)


def without(partition: PartitionImage, broker_id: int, controller_epoch: int) -> PartitionImage:
    """This member leaves the ISR, unless it is the last one; if it led, there is no leader."""
    leader = NO_LEADER if partition.leader == broker_id else partition.leader
    isr = tuple([replica for replica in partition.isr if replica != broker_id])
    return succeed(partition, leader, isr or partition.isr, controller_epoch)


def leader_last(partition: PartitionImage, leaving: list[int]) -> list[int]:
    """The order in which these leave the ISR: if it must keep one, then the last leader."""
    if len(leaving) <= 1:
        return leaving
    return sorted(leaving, key=lambda replica: replica == partition.leader)


def _first(replicas: tuple[int, ...], isr: Container[int], but_not: Container[int] = ()) -> int:
    for replica in replicas:
        if replica in isr and replica not in but_not:
            return replica
    return NO_LEADER
