"""Defines the cluster's metadata as one immutable value: brokers, topics, leaders and ISRs.

Invariant: an image never changes. `apply` returns the next image, which shares the unchanged parts,
so an old image may still be read at any time. It contains the controller's decisions, not the
current state of a broker.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

from barnabas.named_tuple import NamedTuple

if TYPE_CHECKING:
    from barnabas.cluster.controller_requests import UpdateMetadata

NO_LEADER = -1

NEVER_LED = -1
"""The leader epoch and the partition epoch of a partition without a state node."""


class Endpoint(NamedTuple):
    """A broker's address on the named listener."""

    listener: str
    host: str
    port: int
    security_protocol: str


class BrokerImage(NamedTuple):
    """A live broker. `epoch` identifies its registration: the czxid of its znode.

    `may_have_lost` means that unflushed records may have been lost when it last stopped.
    """

    broker_id: int
    endpoints: tuple[Endpoint, ...]
    rack: str | None
    epoch: int
    may_have_lost: bool = False


class PartitionImage(NamedTuple):
    """A partition's replicas, leader and ISR, from its state znode and its topic's.

    `leader_epoch` grows with each election, `partition_epoch` (the znode's data version) with each
    change of any kind. `replicas` begins with the preferred leader. `offline_replicas` are replicas
    of live brokers whose log directory has failed. Their brokers report them; no znode contains
    them. While the partition is being reassigned (KIP-455), `replicas` contains the old and the new
    replicas, `adding` the new ones and `removing` the old ones. Otherwise, `adding` and `removing`
    are empty.
    """

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    replicas: tuple[int, ...]
    partition_epoch: int
    controller_epoch: int
    offline_replicas: tuple[int, ...] = ()
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()

    @classmethod
    def never_led(cls, replicas: Sequence[int], latest_epoch: int = NEVER_LED) -> PartitionImage:
        """Return a partition that has replicas, but no leader and no state node yet.

        `latest_epoch` is the newest epoch in its log, should it have one. New leader epochs must
        exceed it, or they would truncate the epoch history.
        """
        return cls(NO_LEADER, latest_epoch, (), tuple(replicas), NEVER_LED, 0)


class TopicImage(NamedTuple):
    """A topic: its id (16 bytes), its partitions by number, and its own configs."""

    name: str
    topic_id: bytes
    partitions: Mapping[int, PartitionImage]
    config: Mapping[str, str]


class ClusterImage(NamedTuple):
    """The metadata of a cluster."""

    cluster_id: str | None
    controller_id: int
    controller_epoch: int
    brokers: Mapping[int, BrokerImage]
    topics: Mapping[str, TopicImage]
    topic_names: Mapping[bytes, str]  # topic id -> name

    @classmethod
    def empty(cls) -> ClusterImage:
        """Return the image before the controller's first update."""
        nothing: Mapping[int, BrokerImage] = MappingProxyType({})
        return cls(None, -1, 0, nothing, MappingProxyType({}), MappingProxyType({}))

    def apply(self, update: UpdateMetadata) -> ClusterImage:
        """Return the image after a controller's update.

        An update from a deposed controller is ignored.
        """
        # A deposed controller may not have noticed yet.
        if update.controller_epoch < self.controller_epoch:
            return self
        return ClusterImage(
            update.cluster_id,
            update.controller_id,
            update.controller_epoch,
            MappingProxyType({broker.broker_id: broker for broker in update.brokers}),
            *self._topics_after(update),
        )

    def _topics_after(
        self, update: UpdateMetadata
    ) -> tuple[Mapping[str, TopicImage], Mapping[bytes, str]]:
        topics = dict(self.topics)
        names = dict(self.topic_names)
        for name in (*update.removed_topics, *(topic.name for topic in update.topics)):
            # A topic can be recreated under the same name with another id.
            previous = topics.pop(name, None)
            if previous is not None:
                names.pop(previous.topic_id, None)
        for topic in update.topics:
            topics[topic.name] = topic
            names[topic.topic_id] = topic.name
        return MappingProxyType(topics), MappingProxyType(names)
