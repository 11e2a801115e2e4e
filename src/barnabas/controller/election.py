"""Who leads a partition when it begins, or when its leader is gone.

The first replica in the assigned order that may: at the beginning any live one, since there are no
records yet; later only a live one that is in sync (RE-10), because it alone has everything that
was acknowledged. A replica whose log directory has failed counts as dead, though its broker lives.
The ISR never becomes empty: its last members are those to wait for.
"""

from __future__ import annotations

from collections.abc import Container

from barnabas.cluster.image import NEVER_LED, PartitionImage


def elect(
    partition: PartitionImage, live: Container[int], controller_epoch: int
) -> PartitionImage | None:
    """The partition with a new leader, or None: it has a live one, or nobody may lead."""

    def may_lead(replica: int) -> bool:
        return replica in live and replica not in partition.offline_replicas

    if may_lead(partition.leader):
        return None
    is_new = partition.partition_epoch == NEVER_LED
    candidates = partition.replicas if is_new else partition.isr
    isr = tuple(filter(may_lead, candidates))
    if not isr:
        return None
    return partition._replace(
        leader=next(replica for replica in partition.replicas if replica in isr),
        leader_epoch=partition.leader_epoch + 1,
        isr=isr,
        partition_epoch=partition.partition_epoch + 1,
        controller_epoch=controller_epoch,
    )
