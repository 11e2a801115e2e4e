"""Defines the controller's requests to brokers, and the ISR proposals that it receives.

LeaderAndIsr, UpdateMetadata and StopReplica are passed directly to the broker in the controller's
own process. Other brokers receive them as Kafka requests with the same names. Each request contains
the controller's epoch. A broker ignores a request if its epoch is older than the newest epoch that
the broker has seen.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

from barnabas.cluster.image import BrokerImage, ClusterImage, PartitionImage, TopicImage
from barnabas.named_tuple import NamedTuple
from barnabas.types import TopicPartition

NO_EPOCH: Final = -1
"""The leader epoch for a StopReplica that does not contain one (before version 3, KIP-570)."""

WHILE_DELETING: Final = -2
"""The leader epoch in a StopReplica that deletes a whole topic.

It takes precedence over every other epoch.
"""

LONGEST_CAUSE: Final = 200
"""The maximum length of the cause in a LeaderAndIsr, in characters."""

_NO_EPOCHS: Mapping[TopicPartition, int] = MappingProxyType({})
_NO_TOPIC_IDS: Mapping[TopicPartition, bytes] = MappingProxyType({})


class PartitionState(NamedTuple):
    """A partition that the receiving broker has to host, with its leader and ISR.

    `topic_config` contains the topic's own configs, which are needed if the log has to be created.
    """

    topic_partition: TopicPartition
    topic_id: bytes
    partition: PartitionImage
    topic_config: Mapping[str, str]
    is_new: bool  # the partition was just created, so no replica can have records
    cause: str = ""
    """Why the controller changed the partition.

    It is empty if the request is resent or if the controller is Kafka's.
    """


class LeaderAndIsr(NamedTuple):
    """Tells a broker which of these partitions it has to lead, and which it has to follow."""

    controller_id: int
    controller_epoch: int
    partitions: tuple[PartitionState, ...]


class UpdateMetadata(NamedTuple):
    """Sends a broker the metadata for its clients: all live brokers and the changed topics."""

    controller_id: int
    controller_epoch: int
    cluster_id: str
    brokers: tuple[BrokerImage, ...]
    topics: tuple[TopicImage, ...] = ()
    removed_topics: tuple[str, ...] = ()

    @classmethod
    def removing(cls, topics: Iterable[str], image: ClusterImage) -> UpdateMetadata:
        """Return a request that removes these topics from an image and changes nothing else."""
        assert image.cluster_id is not None, "no controller has named a topic before"
        return cls(
            image.controller_id,
            image.controller_epoch,
            image.cluster_id,
            tuple(image.brokers.values()),
            removed_topics=tuple(topics),
        )


class StopReplica(NamedTuple):
    """Tells a broker to stop hosting partitions and, if `delete` is set, to remove their records.

    `leader_epochs` contains, for each partition, the leader epoch in which the decision was made.
    If a broker hosts the partition in a newer epoch, the request was delayed, and the broker keeps
    the partition. A partition that is not in `leader_epochs` has NO_EPOCH.

    `topic_ids` contains the ids that the topics had when the decision was made, because a name may
    refer to another topic by the time the response arrives. The ids are not sent, because the
    request has no field for them.
    """

    controller_id: int
    controller_epoch: int
    partitions: tuple[TopicPartition, ...]
    delete: bool
    leader_epochs: Mapping[TopicPartition, int] = _NO_EPOCHS
    topic_ids: Mapping[TopicPartition, bytes] = _NO_TOPIC_IDS

    def leader_epoch(self, name: TopicPartition) -> int:
        return self.leader_epochs.get(name, NO_EPOCH)


class IsrMember(NamedTuple):
    """A member of a proposed ISR, with the epoch of its broker's registration (KIP-903).

    `broker_epoch` is -1 if it is unknown. A broker that has registered again since then may have
    lost records.
    """

    broker_id: int
    broker_epoch: int


class IsrProposal(NamedTuple):
    """A new ISR that a leader proposes (AlterPartition).

    It is valid once the controller has accepted it.

    `partition_epoch` is the epoch of the ISR that is to be replaced.
    """

    topic_partition: TopicPartition
    topic_id: bytes
    leader_epoch: int
    isr: tuple[IsrMember, ...]
    partition_epoch: int


class IsrAnswer(NamedTuple):
    """The response to an ISR proposal: an error code, or 0 and the partition's current state."""

    error_code: int
    leader: int = -1
    leader_epoch: int = -1
    isr: tuple[int, ...] = ()
    partition_epoch: int = -1


ControlRequest = LeaderAndIsr | UpdateMetadata | StopReplica
