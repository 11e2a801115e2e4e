"""Controlled shutdown of a broker: others lead before it stops, and no ISR waits for it."""

from __future__ import annotations

from barnabas.cluster.image import NEVER_LED
from barnabas.controller.draft import Draft
from barnabas.controller.leader_election import hand_over, without
from barnabas.types import TopicPartition


def leave(draft: Draft, broker_id: int) -> list[TopicPartition]:
    """Move what can be moved; returns the partitions of several replicas that it still leads."""
    remaining = []
    for topic in draft.topics():
        for number, partition in topic.partitions.items():
            if broker_id not in partition.replicas or len(partition.replicas) == 1:
                continue
            if partition.partition_epoch == NEVER_LED:
                continue
            name = TopicPartition(topic.name, number)
            if partition.leader == broker_id:
                moved = hand_over(partition, draft.electable, draft.epoch)
                if moved is None:
                    remaining.append(name)
                else:
                    draft.change(name, moved)
                continue
            draft.stop(broker_id, name, delete=False)
            if broker_id in partition.isr and len(partition.isr) > 1:
                draft.change(name, without(partition, broker_id, draft.epoch))
    return remaining
