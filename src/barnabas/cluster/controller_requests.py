"""What the controller tells brokers, as values: LeaderAndIsr, UpdateMetadata, StopReplica.

To its own broker they are handed over as they are; to another one they travel as the requests of
the same names. Each carries the controller's epoch: a broker ignores a lower one than it has seen.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from barnabas.cluster.image import BrokerImage, PartitionImage, TopicImage
from barnabas.types import TopicPartition

NO_EPOCH: Final = -1
"""A leader epoch in StopReplica: it is not said, as before version 3 (KIP-570)."""

WHILE_DELETING: Final = -2
"""A leader epoch in StopReplica that no newer one outdoes: the whole topic goes."""

_NOT_SAID: Mapping[TopicPartition, int] = MappingProxyType({})
_NO_TOPIC_IDS: Mapping[TopicPartition, bytes] = MappingProxyType({})


class PartitionState(NamedTuple):
    """One partition that the receiving broker shall host, and who leads it.

    `topic_config` is what the topic's own config sets: what a log needs that is made for it now.
    """

    topic_partition: TopicPartition
    topic_id: bytes
    partition: PartitionImage
    topic_config: Mapping[str, str]
    is_new: bool  # just created: no replica can have records of it yet


class LeaderAndIsr(NamedTuple):
    """Lead or follow these partitions."""

    controller_id: int
    controller_epoch: int
    partitions: tuple[PartitionState, ...]


class UpdateMetadata(NamedTuple):
    """What to tell clients: all live brokers, and those topics that changed, each whole."""

    controller_id: int
    controller_epoch: int
    cluster_id: str
    brokers: tuple[BrokerImage, ...]
    topics: tuple[TopicImage, ...] = ()
    removed_topics: tuple[str, ...] = ()


class StopReplica(NamedTuple):
    """Host these partitions no longer; with `delete` their records go too.

    `leader_epochs`: in which each was decided. Who hosts a partition in a newer one keeps it: this
    has been under way for longer than what came after it. What is not in it is NO_EPOCH.

    `topic_ids`: of the topics as they were when it was decided; when the answer comes, a name may
    be another topic's. They do not travel: the request has no field for them.
    """

    controller_id: int
    controller_epoch: int
    partitions: tuple[TopicPartition, ...]
    delete: bool
    leader_epochs: Mapping[TopicPartition, int] = _NOT_SAID
    topic_ids: Mapping[TopicPartition, bytes] = _NO_TOPIC_IDS

    def leader_epoch(self, name: TopicPartition) -> int:
        return self.leader_epochs.get(name, NO_EPOCH)


class IsrMember(NamedTuple):
    """A replica that is to be in sync, and in which registration of its broker (KIP-903).

    `broker_epoch` -1: not known. A broker that came back in the meantime may have lost records.
    """

    broker_id: int
    broker_epoch: int


class IsrProposal(NamedTuple):
    """A leader asks for another ISR (AlterPartition); it counts once the controller has agreed.

    `partition_epoch` is that of the ISR which it would replace.
    """

    topic_partition: TopicPartition
    topic_id: bytes
    leader_epoch: int
    isr: tuple[IsrMember, ...]
    partition_epoch: int


class IsrAnswer(NamedTuple):
    """What the controller says to a proposal: an error code, or (0) how the partition is now."""

    error_code: int
    leader: int = -1
    leader_epoch: int = -1
    isr: tuple[int, ...] = ()
    partition_epoch: int = -1


ControlRequest = LeaderAndIsr | UpdateMetadata | StopReplica
