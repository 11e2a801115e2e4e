"""The controller: turns wishes and events into metadata operations, and then into requests.

A pure machine whose log is the metadata store. Each event gives a Decision: operations to commit
in one go under the controller epoch's version (a deposed controller's commit fails as a whole), the
image as it is afterwards, and the requests that tell the brokers. Whoever drives it commits first,
then calls `apply`, then sends; if the commit fails nothing has happened, here or anywhere.

Invariant: `image` is what has been committed. A topic is deleted in Kafka's order, each step of
which can be repeated after a crash: nobody leads it, every replica is gone, its nodes are gone,
and last the wish for its deletion.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from barnabas.cluster import layout
from barnabas.cluster.control import (
    ControlRequest,
    LeaderAndIsr,
    PartitionState,
    StopReplica,
    UpdateMetadata,
)
from barnabas.cluster.image import NEVER_LED, NO_LEADER, ClusterImage, PartitionImage, TopicImage
from barnabas.cluster.store import Check, Create, Delete, Operation, Set
from barnabas.controller.election import elect
from barnabas.types import TopicPartition


class Send(NamedTuple):
    """A request to one broker."""

    broker_id: int
    request: ControlRequest


class Decision(NamedTuple):
    """Commit `operations` (there may be none), apply, then send `requests` in their order."""

    operations: tuple[Operation, ...]
    image: ClusterImage
    requests: tuple[Send, ...]


class Controller:
    """An elected controller."""

    __slots__ = ("_epoch_version", "image")

    def __init__(self, epoch_version: int, image: ClusterImage) -> None:
        """`image`: the loaded tree, with this controller and its epoch in it.

        `epoch_version`: the data version of `/controller_epoch` since this one was elected.
        """
        self._epoch_version = epoch_version
        self.image = image

    def elected(self, deleting: Iterable[str]) -> Decision:
        """Take office: lead what can be led, and tell every broker everything that is to stay."""
        leaving = set(deleting)
        topics = [topic for name, topic in self.image.topics.items() if name not in leaving]
        return self._announce(topics)

    def topics_added(self, topics: Sequence[TopicImage]) -> Decision:
        """Topics whose nodes have appeared: each partition gets its first leader."""
        return self._announce(topics)

    def deletions_wished(self, names: Iterable[str]) -> Decision:
        """First half: nobody leads these topics any more, and their replicas are to be deleted.

        The image keeps them, without leaders, for as long as their names are taken.
        """
        operations: list[Operation] = []
        left = []
        for topic in filter(None, map(self.image.topics.get, names)):
            partitions = {}
            for number, partition in topic.partitions.items():
                if partition.partition_epoch != NEVER_LED:
                    partition = self._abandoned(partition)
                    operations.append(_set_state(topic.name, number, partition))
                partitions[number] = partition
            left.append(topic._replace(partitions=partitions))
        gone = self._update(removed=tuple(topic.name for topic in left))
        requests = [Send(broker_id, gone) for broker_id in self.image.brokers]
        for broker_id in self.image.brokers:
            hosted = tuple(
                state.topic_partition for state in _hosted_states(left, broker_id, frozenset())
            )
            stop = StopReplica(self.image.controller_id, self.epoch, hosted, delete=True)
            requests.append(Send(broker_id, stop))
        return self._decision(operations, self.image.apply(self._update(left)), requests)

    def replicas_deleted(self, names: Iterable[str], paths: Iterable[str]) -> Decision:
        """Second half: the nodes go. `paths` are all that exist, children first, the wish last."""
        image = self.image.apply(self._update(removed=tuple(names)))
        return self._decision([Delete(path) for path in paths], image, [])

    def apply(self, decision: Decision) -> None:
        """The decision's operations have been committed."""
        self.image = decision.image

    @property
    def epoch(self) -> int:
        return self.image.controller_epoch

    def _announce(self, topics: Sequence[TopicImage]) -> Decision:
        """Elect where there is no live leader, and tell the brokers of these topics, whole."""
        operations: list[Operation] = []
        new: set[TopicPartition] = set()
        led = []
        for topic in topics:
            partitions = dict(topic.partitions)
            if all(each.partition_epoch == NEVER_LED for each in partitions.values()):
                operations.append(Create(layout.partitions_path(topic.name)))
            for number, partition in topic.partitions.items():
                elected = elect(partition, self.image.brokers, self.epoch)
                if elected is None:
                    continue
                partitions[number] = elected
                if partition.partition_epoch == NEVER_LED:
                    new.add(TopicPartition(topic.name, number))
                    operations += _create_state(topic.name, number, elected)
                else:
                    operations.append(_set_state(topic.name, number, elected))
            led.append(topic._replace(partitions=partitions))
        requests = []
        for broker_id in self.image.brokers:
            states = tuple(_hosted_states(led, broker_id, new))
            if states:
                request = LeaderAndIsr(self.image.controller_id, self.epoch, states)
                requests.append(Send(broker_id, request))
        update = self._update(led)
        requests += [Send(broker_id, update) for broker_id in self.image.brokers]
        return self._decision(operations, self.image.apply(update), requests)

    def _abandoned(self, partition: PartitionImage) -> PartitionImage:
        """Without a leader; what is left of the ISR is its last member."""
        return partition._replace(
            leader=NO_LEADER,
            leader_epoch=partition.leader_epoch + 1,
            isr=partition.isr[-1:],
            partition_epoch=partition.partition_epoch + 1,
            controller_epoch=self.epoch,
        )

    def _update(
        self, topics: Sequence[TopicImage] = (), removed: tuple[str, ...] = ()
    ) -> UpdateMetadata:
        image = self.image
        assert image.cluster_id is not None
        return UpdateMetadata(
            image.controller_id,
            image.controller_epoch,
            image.cluster_id,
            tuple(image.brokers.values()),
            tuple(topics),
            removed,
        )

    def _decision(
        self, operations: Sequence[Operation], image: ClusterImage, requests: Sequence[Send]
    ) -> Decision:
        fenced: tuple[Operation, ...] = ()
        if operations:
            fenced = (Check(layout.CONTROLLER_EPOCH, self._epoch_version), *operations)
        return Decision(fenced, image, tuple(requests))


def _hosted_states(
    topics: Iterable[TopicImage], broker_id: int, new: Iterable[TopicPartition]
) -> Iterable[PartitionState]:
    """The partitions of these topics that have a replica on this broker."""
    new = frozenset(new)
    for topic in topics:
        for number, partition in topic.partitions.items():
            if broker_id in partition.replicas:
                name = TopicPartition(topic.name, number)
                yield PartitionState(name, topic.topic_id, partition, topic.config, name in new)


def _create_state(topic: str, number: int, partition: PartitionImage) -> list[Operation]:
    """The nodes of a partition that begins."""
    state = layout.encode_state(layout.state_of(partition))
    return [
        Create(layout.partition_path(topic, number)),
        Create(layout.state_path(topic, number), state),
    ]


def _set_state(topic: str, number: int, partition: PartitionImage) -> Set:
    """Write what follows on the version that was read: its epoch is one more."""
    state = layout.encode_state(layout.state_of(partition))
    return Set(layout.state_path(topic, number), state, partition.partition_epoch - 1)
