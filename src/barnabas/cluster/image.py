"""What the cluster is, as one immutable value: brokers, topics, who leads what.

Invariant: an image never changes; `apply` gives the next one and shares what is the same. Whoever
holds an image may read it for as long as it likes. It says what the controller decided, not what
is true of a broker at this moment.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from barnabas.cluster.controller_requests import UpdateMetadata

NO_LEADER = -1

NEVER_LED = -1
"""The leader epoch and the partition epoch of a partition that has no state node yet."""


class Endpoint(NamedTuple):
    """One address of a broker, under the name of the listener that serves it."""

    listener: str
    host: str
    port: int
    security_protocol: str


class BrokerImage(NamedTuple):
    """A live broker. `epoch` tells its registrations apart: the czxid of its znode.

    `may_have_lost`: it ended in a way in which records that it had not flushed can be gone.
    """

    broker_id: int
    endpoints: tuple[Endpoint, ...]
    rack: str | None
    epoch: int
    may_have_lost: bool = False


class PartitionImage(NamedTuple):
    """Who holds and who leads a partition, as its state znode and its topic's say.

    `leader_epoch` grows with each election, `partition_epoch` (the znode's data version) with each
    change of any kind. `replicas` begins with the preferred leader. `offline_replicas` are those
    of live brokers whose log directory has failed: no znode has them, their brokers tell. While the
    partition is reassigned (KIP-455) `replicas` has the old and the new ones, `adding` those that
    come and `removing` those that go; both are empty else.
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
        """A partition that has replicas assigned, and no leader and no state node yet.

        `latest_epoch`: the newest one in its log, where there is a log all the same. The leader
        epochs to come are above it, or they would cut the history of those that have been.
        """
        return cls(NO_LEADER, latest_epoch, (), tuple(replicas), NEVER_LED, 0)


class TopicImage(NamedTuple):
    """A topic: its id (16 bytes), its partitions by number, what its own config sets."""

    name: str
    topic_id: bytes
    partitions: Mapping[int, PartitionImage]
    config: Mapping[str, str]


class ClusterImage(NamedTuple):
    """Everything that a broker knows of its cluster."""

    cluster_id: str | None
    controller_id: int
    controller_epoch: int
    brokers: Mapping[int, BrokerImage]
    topics: Mapping[str, TopicImage]
    topic_names: Mapping[bytes, str]  # by topic id

    @classmethod
    def empty(cls) -> ClusterImage:
        """Before the controller's first word."""
        nothing: Mapping[int, BrokerImage] = MappingProxyType({})
        return cls(None, -1, 0, nothing, MappingProxyType({}), MappingProxyType({}))

    def apply(self, update: UpdateMetadata) -> ClusterImage:
        """The image after the controller's update; one of a deposed controller changes nothing."""
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
            # A topic may come back under its name with another id.
            previous = topics.pop(name, None)
            if previous is not None:
                names.pop(previous.topic_id, None)
        for topic in update.topics:
            topics[topic.name] = topic
            names[topic.topic_id] = topic.name
        return MappingProxyType(topics), MappingProxyType(names)
