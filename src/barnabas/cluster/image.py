"""Represents the cluster's metadata as one immutable value: brokers, topics, leaders and ISRs.

Invariant: an image never changes. `apply` returns a new image that shares the unchanged parts with
the old one, so an old image can be read at any time. The image contains what the controller
decided, not what a broker is currently doing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

from barnabas.named_tuple import NamedTuple
from barnabas.types import NO_TOPIC_ID

if TYPE_CHECKING:
    from barnabas.cluster.controller_requests import UpdateMetadata

NO_LEADER = -1

NEVER_LED = -1
"""The leader epoch and the partition epoch of a partition that has no state node."""


class Endpoint(NamedTuple):
    """The name and the address of a broker's listener."""

    listener: str
    host: str
    port: int
    security_protocol: str


class BrokerImage(NamedTuple):
    """A live broker. `epoch` identifies its registration and is the czxid of its znode.

    If `may_have_lost` is true, the broker may have lost unflushed records when it last stopped.
    """

    broker_id: int
    endpoints: tuple[Endpoint, ...]
    rack: str | None
    epoch: int
    may_have_lost: bool = False


class PartitionImage(NamedTuple):
    """A partition's replicas, leader and ISR, from its state znode and the znode of its topic.

    `leader_epoch` is incremented by each election, and `partition_epoch` (the data version of the
    znode) by every change. The first entry of `replicas` is the preferred leader.
    `offline_replicas` are replicas on live brokers whose log directory has failed. They are
    reported by their brokers and are not stored in any znode. While the partition is being
    reassigned (KIP-455), `replicas` contains the old and the new replicas, `adding` contains the
    new replicas, and `removing` contains the old ones. Otherwise, `adding` and `removing` are
    empty.
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

        `latest_epoch` is the newest epoch in the partition's log, if it has one. New leader epochs
        must be greater, because otherwise they would truncate the epoch history.
        """
        return cls(NO_LEADER, latest_epoch, (), tuple(replicas), NEVER_LED, 0)


class TopicImage(NamedTuple):
    """A topic: its id (16 bytes), its partitions by number, and the configs set on the topic.

    The id is NO_TOPIC_ID as long as no controller has assigned one.
    """

    name: str
    topic_id: bytes
    partitions: Mapping[int, PartitionImage]
    config: Mapping[str, str]


class ClusterImage(NamedTuple):
    """All metadata of a cluster."""

    cluster_id: str | None
    controller_id: int
    controller_epoch: int
    brokers: Mapping[int, BrokerImage]
    topics: Mapping[str, TopicImage]
    topic_names: Mapping[bytes, str]  # topic id -> name

    @classmethod
    def empty(cls) -> ClusterImage:
        """Return the image that a broker has before the first update from the controller."""
        nothing: Mapping[int, BrokerImage] = MappingProxyType({})
        return cls(None, -1, 0, nothing, MappingProxyType({}), MappingProxyType({}))

    def apply(self, update: UpdateMetadata) -> ClusterImage:
        """Return the image that results from an update by a controller.

        Updates from a deposed controller are ignored.
        """
        # A deposed controller may not know yet that it has been deposed.
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
            # A topic may have been recreated with the same name and another id.
            previous = topics.pop(name, None)
            if previous is not None:
                names.pop(previous.topic_id, None)
        for topic in update.topics:
            topics[topic.name] = topic
            if topic.topic_id != NO_TOPIC_ID:
                names[topic.topic_id] = topic.name
        return MappingProxyType(topics), MappingProxyType(names)
