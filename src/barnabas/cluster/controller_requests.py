"""Defines the controller's requests to brokers, and ISR proposals to the controller, as values.

LeaderAndIsr, UpdateMetadata and StopReplica are passed directly to the controller's own broker, and
sent to other brokers as the requests with these names. Each contains the controller's epoch; a
broker ignores requests from an older epoch than the newest it has seen.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

from barnabas.cluster.image import BrokerImage, ClusterImage, PartitionImage, TopicImage
from barnabas.named_tuple import NamedTuple
from barnabas.types import TopicPartition

NO_EPOCH: Final = -1
"""The leader epoch in a StopReplica that contains none (before version 3, KIP-570)."""

WHILE_DELETING: Final = -2
"""The leader epoch in StopReplica if the whole topic is deleted; it exceeds every other."""

LONGEST_CAUSE: Final = 200
"""The maximum number of characters of a cause in a LeaderAndIsr."""

_NO_EPOCHS: Mapping[TopicPartition, int] = MappingProxyType({})
_NO_TOPIC_IDS: Mapping[TopicPartition, bytes] = MappingProxyType({})


class PartitionState(NamedTuple):
    """A partition that the receiving broker must host, with its leader and ISR.

    `topic_config` contains the topic's own configs, in case the log has to be created.
    """

    topic_partition: TopicPartition
    topic_id: bytes
    partition: PartitionImage
    topic_config: Mapping[str, str]
    is_new: bool  # just created: no replica can have records yet
    cause: str = ""
    """Why the controller changed the partition; empty for a resend, or if Kafka's decided it."""


class LeaderAndIsr(NamedTuple):
    """A request to lead or follow these partitions."""

    controller_id: int
    controller_epoch: int
    partitions: tuple[PartitionState, ...]


class UpdateMetadata(NamedTuple):
    """A request with metadata for clients: all live brokers, and every changed topic in full."""

    controller_id: int
    controller_epoch: int
    cluster_id: str
    brokers: tuple[BrokerImage, ...]
    topics: tuple[TopicImage, ...] = ()
    removed_topics: tuple[str, ...] = ()

    @classmethod
    def removing(cls, topics: Iterable[str], image: ClusterImage) -> UpdateMetadata:
        """Return a request that removes these topics from an image and leaves everything else
        unchanged.
        """
        assert image.cluster_id is not None, "no controller has named a topic before"
        return cls(
            image.controller_id,
            image.controller_epoch,
            image.cluster_id,
            tuple(image.brokers.values()),
            removed_topics=tuple(topics),
        )


class StopReplica(NamedTuple):
    """A request to stop hosting these partitions and, with `delete`, to remove their records.

    `leader_epochs` contains the epoch in which this was decided for each partition. A broker that
    hosts a partition in a newer epoch keeps it: the request was delayed. A partition missing from
    `leader_epochs` has NO_EPOCH.

    `topic_ids` contains the topics' ids at the time of the decision: when the response arrives, a
    name may refer to another topic. The request has no field for the ids, so they are not sent.
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

    A `broker_epoch` of -1 means unknown. A broker that restarted in the meantime may have lost
    records.
    """

    broker_id: int
    broker_epoch: int


class IsrProposal(NamedTuple):
    """A leader's ISR proposal (AlterPartition), valid once the controller has accepted it.

    `partition_epoch` is the epoch of the ISR to replace.
    """

    topic_partition: TopicPartition
    topic_id: bytes
    leader_epoch: int
    isr: tuple[IsrMember, ...]
    partition_epoch: int


class IsrAnswer(NamedTuple):
    """The response to a proposal: an error code, or (0) the partition's current state."""

    error_code: int
    leader: int = -1
    leader_epoch: int = -1
    isr: tuple[int, ...] = ()
    partition_epoch: int = -1


ControlRequest = LeaderAndIsr | UpdateMetadata | StopReplica
