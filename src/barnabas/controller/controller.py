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

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
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


class _Hosted(NamedTuple):
    """What one broker hosts of some topics."""

    broker_id: int
    states: tuple[PartitionState, ...]


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
        return self._lead(topics, tells_all=True)

    def topics_added(self, topics: Sequence[TopicImage]) -> Decision:
        """Topics whose nodes have appeared: each partition gets its first leader."""
        return self._lead(topics, tells_all=True)

    def partitions_added(self, topics: Sequence[TopicImage]) -> Decision:
        """Topics that have grown, whole: what is new gets its leaders, the rest stays as it is."""
        return self._lead(topics, tells_all=False)

    def configs_changed(self, configs: Mapping[str, Mapping[str, str]]) -> Decision:
        """These topics' own settings are others now; every broker is told."""
        topics = [
            self.image.topics[name]._replace(config=config) for name, config in configs.items()
        ]
        return self._decision([], topics, [])

    def replicas_offline(self, broker_id: int, names: Iterable[TopicPartition]) -> Decision:
        """A live broker has lost these replicas with a log directory.

        It leads them no longer; another member of the ISR does, or nobody until they are back. The
        broker itself is told nothing of its role: what it has lost, it knows.
        """
        operations: list[Operation] = []
        changed: dict[str, dict[int, PartitionImage]] = {}
        lost = set()
        for name in names:
            topic = self.image.topics.get(name.topic)
            if topic is None or name.partition not in topic.partitions:
                continue  # deleted in the meantime
            partitions = changed.setdefault(name.topic, dict(topic.partitions))
            before = partitions[name.partition]
            after = partitions[name.partition] = self._without(before, broker_id)
            if after.partition_epoch != before.partition_epoch:
                operations.append(_set_state(name.topic, name.partition, after))
                lost.add(name)
        topics = [self.image.topics[name]._replace(partitions=changed[name]) for name in changed]
        told = self._leader_and_isr(
            states
            for states in _states_by_broker(topics, self.image.brokers, only=lost)
            if states.broker_id != broker_id
        )
        return self._decision(operations, topics, told)

    def deletions_wished(self, names: Iterable[str]) -> Decision:
        """First half: nobody leads these topics any more, and their replicas are to be deleted.

        The image keeps them, without leaders, for as long as their names are taken.
        """
        operations: list[Operation] = []
        left = []
        for topic in filter(None, map(self.image.topics.get, names)):
            partitions = {}
            for number, partition in topic.partitions.items():
                if partition.partition_epoch != NEVER_LED and partition.leader != NO_LEADER:
                    partition = self._abandoned(partition)
                    operations.append(_set_state(topic.name, number, partition))
                partitions[number] = partition
            left.append(topic._replace(partitions=partitions))
        gone = self._update(removed=tuple(topic.name for topic in left))
        requests = [Send(broker_id, gone) for broker_id in self.image.brokers]
        for broker_id, states in _states_by_broker(left, self.image.brokers):
            hosted = tuple(state.topic_partition for state in states)
            stop = StopReplica(self.image.controller_id, self.epoch, hosted, delete=True)
            requests.append(Send(broker_id, stop))
        return self._fenced(operations, self.image.apply(self._update(left)), requests)

    def replicas_deleted(self, names: Iterable[str], paths: Iterable[str]) -> Decision:
        """Second half: the nodes go. `paths` are all that exist, children first, the wish last."""
        image = self.image.apply(self._update(removed=tuple(names)))
        return self._fenced([Delete(path) for path in paths], image, [])

    def apply(self, decision: Decision) -> None:
        """The decision's operations have been committed."""
        self.image = decision.image

    @property
    def epoch(self) -> int:
        return self.image.controller_epoch

    def _lead(self, topics: Sequence[TopicImage], *, tells_all: bool) -> Decision:
        """Elect where there is no live leader, and tell the brokers of these topics.

        With `tells_all` of every partition that they host, else of those that were elected.
        """
        operations: list[Operation] = []
        elected: set[TopicPartition] = set()
        new: set[TopicPartition] = set()
        led = []
        for topic in topics:
            partitions = dict(topic.partitions)
            if all(each.partition_epoch == NEVER_LED for each in partitions.values()):
                operations.append(Create(layout.partitions_path(topic.name)))
            for number, before in topic.partitions.items():
                after = elect(before, self.image.brokers, self.epoch)
                if after is None:
                    continue
                partitions[number] = after
                name = TopicPartition(topic.name, number)
                elected.add(name)
                if before.partition_epoch != NEVER_LED:
                    operations.append(_set_state(topic.name, number, after))
                    continue
                operations += _create_state(topic.name, number, after)
                if before.leader_epoch == NEVER_LED:
                    new.add(name)
            led.append(topic._replace(partitions=partitions))
        only = None if tells_all else elected
        told = _states_by_broker(led, self.image.brokers, new=new, only=only)
        return self._decision(operations, led, self._leader_and_isr(told))

    def _without(self, partition: PartitionImage, broker_id: int) -> PartitionImage:
        """The partition when this broker's replica is offline, and who leads it then.

        The ISR keeps its last member, which has what was acknowledged; it is waited for.
        """
        if broker_id in partition.offline_replicas:
            return partition
        partition = partition._replace(offline_replicas=(*partition.offline_replicas, broker_id))
        if broker_id not in partition.isr or partition.leader == NO_LEADER:
            return partition
        elected = elect(partition, self.image.brokers, self.epoch)
        if elected is not None:
            return elected
        others = tuple(replica for replica in partition.isr if replica != broker_id)
        return partition._replace(
            leader=NO_LEADER if partition.leader == broker_id else partition.leader,
            leader_epoch=partition.leader_epoch + 1,
            isr=others or partition.isr,
            partition_epoch=partition.partition_epoch + 1,
            controller_epoch=self.epoch,
        )

    def _abandoned(self, partition: PartitionImage) -> PartitionImage:
        """Without a leader; what is left of the ISR is its last member."""
        return partition._replace(
            leader=NO_LEADER,
            leader_epoch=partition.leader_epoch + 1,
            isr=partition.isr[-1:],
            partition_epoch=partition.partition_epoch + 1,
            controller_epoch=self.epoch,
        )

    def _leader_and_isr(self, told: Iterable[_Hosted]) -> list[Send]:
        return [
            Send(broker_id, LeaderAndIsr(self.image.controller_id, self.epoch, states))
            for broker_id, states in told
            if states
        ]

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
        self,
        operations: Sequence[Operation],
        topics: Sequence[TopicImage],
        requests: Sequence[Send],
    ) -> Decision:
        """These topics are so from now on: first who shall lead is told, then everybody."""
        update = self._update(topics)
        told = [Send(broker_id, update) for broker_id in self.image.brokers]
        return self._fenced(operations, self.image.apply(update), [*requests, *told])

    def _fenced(
        self, operations: Sequence[Operation], image: ClusterImage, requests: Sequence[Send]
    ) -> Decision:
        fenced: tuple[Operation, ...] = ()
        if operations:
            fenced = (Check(layout.CONTROLLER_EPOCH, self._epoch_version), *operations)
        return Decision(fenced, image, tuple(requests))


def _states_by_broker(
    topics: Sequence[TopicImage],
    brokers: Iterable[int],
    *,
    new: Container[TopicPartition] = (),
    only: Container[TopicPartition] | None = None,
) -> Iterator[_Hosted]:
    """For each broker the partitions of these topics that it hosts; `only` some of them."""
    for broker_id in brokers:
        states = []
        for topic in topics:
            for number, partition in topic.partitions.items():
                name = TopicPartition(topic.name, number)
                if broker_id in partition.replicas and (only is None or name in only):
                    states.append(
                        PartitionState(name, topic.topic_id, partition, topic.config, name in new)
                    )
        yield _Hosted(broker_id, tuple(states))


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
