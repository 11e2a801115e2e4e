"""A decision in the making: how partitions are after each write, what is written, who is told.

Invariant: a partition's state is written in steps, each of which follows on the one before by its
version and stands alone: a reader that sees the tree between two of them sees a legal state. Where
Kafka's controller takes several steps (a dead leader leaves the ISR, then another one is elected)
the epochs here grow as there.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence, Set
from typing import NamedTuple

from barnabas.cluster import layout, store
from barnabas.cluster.controller_requests import (
    NO_EPOCH,
    WHILE_DELETING,
    LeaderAndIsr,
    StopReplica,
    UpdateMetadata,
)
from barnabas.cluster.image import (
    NEVER_LED,
    BrokerImage,
    ClusterImage,
    PartitionImage,
    TopicImage,
)
from barnabas.controller.decision import Decision, Send
from barnabas.controller.guard import Settings, is_in_doubt, waits_for_ends
from barnabas.controller.leader_election import elect, elect_unclean
from barnabas.controller.recipients import Changed, New, all_roles, note, roles, to_all
from barnabas.types import TopicPartition

_RECOVERING = b'"version":1,"leader_recovery_state":1,'
_NOBODY: Set[int] = frozenset()


class Office(NamedTuple):
    """What decisions depend on beside the image: whose they are, and what has been begun."""

    epoch_version: int
    settings: Settings
    leaving: Mapping[int, int]  # brokers that shut down: the registration in which they said so
    deleting: Set[str]
    topic_versions: Mapping[str, int]


class Draft:
    """One decision. Partitions are read and written here, then `decision` is asked for once."""

    __slots__ = (
        "_changed",
        "_encoded",
        "_new",
        "_notes",
        "_office",
        "_operations",
        "_stopped",
        "_told",
        "brokers",
        "electable",
        "image",
        "unclean_elections",
    )

    def __init__(
        self,
        image: ClusterImage,
        office: Office,
        brokers: Mapping[int, BrokerImage] | None = None,
    ) -> None:
        """`brokers`: the live ones, where they are others than in the image."""
        self.image = image
        self.brokers = image.brokers if brokers is None else brokers
        self.electable = frozenset(
            broker.broker_id
            for broker in self.brokers.values()
            if office.leaving.get(broker.broker_id) != broker.epoch
        )
        self.unclean_elections = 0
        self._office = office
        self._operations: list[store.Operation] = []
        self._changed: Changed = {}
        self._told: dict[TopicPartition, None] = {}
        self._new: New = {}
        self._stopped: dict[tuple[int, bool], list[TopicPartition]] = {}
        self._notes: dict[str, list[TopicPartition]] = {}
        self._encoded: dict[tuple[int, tuple[int, ...], int], bytes] = {}

    @property
    def epoch(self) -> int:
        return self.image.controller_epoch

    @property
    def settings(self) -> Settings:
        return self._office.settings

    def topic(self, name: str) -> TopicImage | None:
        """A topic that is to stay, as the image has it or as it was taken up."""
        if name in self._office.deleting:
            return None
        changed = self._changed.get(name)
        return self.image.topics.get(name) if changed is None else changed[0]

    def topics(self) -> Iterator[TopicImage]:
        """Those that are to stay."""
        deleting = self._office.deleting
        return (topic for topic in self.image.topics.values() if topic.name not in deleting)

    def topics_to_go(self) -> Iterator[TopicImage]:
        """Those that the image keeps without leaders, for as long as their names are taken."""
        deleting = self._office.deleting
        return (topic for topic in self.image.topics.values() if topic.name in deleting)

    def get(self, name: TopicPartition) -> PartitionImage | None:
        """A partition as it is by now, of a topic that is to stay."""
        topic = self.topic(name.topic)
        if topic is None:
            return None
        changed = self._changed.get(name.topic)
        return (topic.partitions if changed is None else changed[1]).get(name.partition)

    def take_up(self, topic: TopicImage) -> None:
        """A topic that is another one now than in the image, or that is to be told again."""
        self._changed[topic.name] = (topic, dict(topic.partitions))

    def put(self, name: TopicPartition, partition: PartitionImage) -> None:
        """Something about a partition has changed that its state node does not have."""
        changed = self._changed.get(name.topic)
        if changed is None:
            topic = self.image.topics[name.topic]
            changed = self._changed[name.topic] = (topic, dict(topic.partitions))
        changed[1][name.partition] = partition

    def write(
        self, name: TopicPartition, partition: PartitionImage, *, unclean: bool = False
    ) -> None:
        """The partition takes one step. `unclean`: its leader may lack what was acknowledged."""
        version = partition.partition_epoch
        if version == NEVER_LED + 1:
            self._begin(name, partition)
        else:
            data = self._encode(partition)
            if unclean:
                # Kafka's mark, until the ISR changes next; nobody there acts on it, nor do we.
                data = data.replace(b'"version":1,', _RECOVERING, 1)
            written = store.Set(layout.state_path(*name), data, version - 1)
            self._operations.append(written)
        self.put(name, partition)

    def change(self, name: TopicPartition, partition: PartitionImage) -> None:
        """As `write`; and its replicas are told who leads."""
        self.write(name, partition)
        self._told[name] = None

    def tell(self, name: TopicPartition, new: Container[int] = ()) -> None:
        """Its replicas are told who leads; those in `new` cannot have records of it yet."""
        self._told[name] = None
        if new:
            self._new[name] = new

    def write_topic(self, name: str, *, first: bool = False) -> None:
        """A topic's node as its partitions are now; `first`: before all that has been written."""
        topic, partitions = self._changed[name]
        node = layout.TopicNode(
            topic.topic_id,
            {number: each.replicas for number, each in partitions.items()},
            {number: each.adding for number, each in partitions.items() if each.adding},
            {number: each.removing for number, each in partitions.items() if each.removing},
        )
        version = self._office.topic_versions.get(name, store.ANY_VERSION)
        path = layout.topic_path(name)
        written = store.Set(path, layout.encode_topic_node(node), version)
        # Once in a decision, as it is at last: a second one would not find the version it names.
        self._operations = [
            each
            for each in self._operations
            if not (isinstance(each, store.Set) and each.path == path)
        ]
        self._operations.insert(0 if first else len(self._operations), written)

    def lead(self, name: TopicPartition, *, unclean: bool = False) -> bool:
        """Elect somebody if nobody leads, or a dead one; whether it has a leader now.

        One of the ISR, else any live replica where the topic allows it, or with `unclean`.
        """
        topic, partition = self.topic(name.topic), self.get(name)
        assert topic is not None and partition is not None
        if self.has_leader(partition):
            return True
        in_doubt = is_in_doubt(partition, self.brokers)
        if in_doubt and not unclean and waits_for_ends(topic, self.settings):
            return False
        elected = elect(partition, self.electable, self.epoch)
        if elected is None:
            may = unclean or self.settings.is_unclean_allowed_for(topic)
            return may and self._lead_uncleanly(name, partition)
        self.change(name, elected)
        if partition.partition_epoch == NEVER_LED == partition.leader_epoch:
            self._new[name] = partition.replicas
        if in_doubt:
            self.note("led by the last that was in sync, which may have lost records", name)
        return True

    def _lead_uncleanly(self, name: TopicPartition, partition: PartitionImage) -> bool:
        """Elect a replica that is not in sync; whether one of them lives."""
        elected = elect_unclean(partition, self.electable, self.epoch)
        if elected is None:
            return False
        self.write(name, elected, unclean=True)
        self.tell(name)
        self.unclean_elections += 1
        what = "led by a replica that was not in sync (unclean election), records may be lost"
        self.note(what, name)
        return True

    @property
    def has_changed(self) -> bool:
        """Whether there is anything to tell."""
        return bool(self._changed or self._stopped)

    def has_leader(self, partition: PartitionImage) -> bool:
        """Whether its leader lives, and its replica is not offline."""
        leader = partition.leader
        return leader in self.brokers and leader not in partition.offline_replicas

    def stop(self, broker_id: int, name: TopicPartition, *, delete: bool) -> None:
        """A broker is to host a partition no longer."""
        if broker_id in self.brokers:
            self._stopped.setdefault((broker_id, delete), []).append(name)

    def note(self, what: str, name: TopicPartition) -> None:
        """Say of a partition what a person should know."""
        self._notes.setdefault(what, []).append(name)

    def operate(self, operations: Iterable[store.Operation]) -> None:
        """Write what is no partition's state."""
        self._operations += operations

    def decision(
        self,
        *,
        newcomers: Set[int] = _NOBODY,
        silent: Container[int] = (),
    ) -> Decision:
        """All of it. Newcomers are told everything; `silent` ones nothing of their roles.

        Whoever leads is told before everybody else, so that it knows it before clients ask. The
        others know before that where brokers are that they shall follow; and a newcomer of all
        topics, since what it has not heard of is unknown to its clients. Of topics that are to go
        nobody is told.
        """
        changed, deleting = self._topics(), self._office.deleting
        image = self.image.apply(self._update(changed))
        topics = [topic for topic in changed if topic.name not in deleting]
        update = self._update(topics)
        known = [broker_id for broker_id in self.brokers if broker_id not in newcomers]
        requests: list[Send] = []
        if newcomers:
            requests += to_all(known, self._update([]))
        hearing = [broker_id for broker_id in known if broker_id not in silent]
        hosted = roles(self._changed, self._told, self._new, hearing)
        if newcomers:
            staying = [topic for topic in image.topics.values() if topic.name not in deleting]
            requests += to_all(sorted(newcomers), self._update(staying))
            hosted.update(all_roles(staying, self._new, newcomers))
        for broker_id in self.brokers:
            states = tuple(hosted.get(broker_id, ()))
            if states:
                told = LeaderAndIsr(self.image.controller_id, self.epoch, states)
                requests.append(Send(broker_id, told))
        requests += self._stops()
        if topics or not newcomers:
            requests += to_all(known, update)
        return self._fenced(image, requests)

    def nothing(self) -> Decision:
        """Nothing changes, and nobody needs to be told."""
        return Decision((), self.image, ())

    def removal(self, names: Sequence[str]) -> Decision:
        """All of it, where these topics are on their way out: nobody shall know them any more."""
        gone = self._update([], tuple(names))
        image = self.image.apply(self._update(self._topics()))
        return self._fenced(image, [*to_all(self.brokers, gone), *self._stops()])

    def forgotten(self, names: Sequence[str]) -> Decision:
        """All of it, where these topics are gone; the brokers have been told before."""
        return self._fenced(self.image.apply(self._update([], tuple(names))), [])

    def _topics(self) -> list[TopicImage]:
        return [
            topic._replace(partitions=partitions) for topic, partitions in self._changed.values()
        ]

    def _stops(self) -> Iterator[Send]:
        for (broker_id, delete), names in self._stopped.items():
            epochs = {name: self._epoch_of(name) for name in names}
            topic_ids = {name: self.image.topics[name.topic].topic_id for name in names}
            yield Send(
                broker_id,
                StopReplica(
                    self.image.controller_id, self.epoch, tuple(names), delete, epochs, topic_ids
                ),
            )

    def _epoch_of(self, name: TopicPartition) -> int:
        """The leader epoch in which a replica is stopped; a deletion does not let it grow."""
        if name.topic in self._office.deleting:
            return WHILE_DELETING
        partition = self.get(name)
        return NO_EPOCH if partition is None else partition.leader_epoch

    def _fenced(self, image: ClusterImage, requests: Sequence[Send]) -> Decision:
        fenced: tuple[store.Operation, ...] = ()
        if self._operations:
            fence = store.Check(layout.CONTROLLER_EPOCH, self._office.epoch_version)
            fenced = (fence, *self._operations)
        notes = tuple(note(what, names) for what, names in self._notes.items())
        return Decision(fenced, image, tuple(requests), self.unclean_elections, notes)

    def _update(
        self, topics: Sequence[TopicImage], removed: tuple[str, ...] = ()
    ) -> UpdateMetadata:
        assert self.image.cluster_id is not None
        return UpdateMetadata(
            self.image.controller_id,
            self.epoch,
            self.image.cluster_id,
            tuple(self.brokers.values()),
            tuple(topics),
            removed,
        )

    def _begin(self, name: TopicPartition, partition: PartitionImage) -> None:
        """The nodes of a partition that begins, and above them those of its topic's first one."""
        topic = self._changed.get(name.topic)
        partitions = self.image.topics[name.topic].partitions if topic is None else topic[1]
        if all(each.partition_epoch == NEVER_LED for each in partitions.values()):
            self._operations.append(store.Create(layout.partitions_path(name.topic)))
        self._operations.append(store.Create(layout.partition_path(*name)))
        data = self._encode(partition)
        self._operations.append(store.Create(layout.state_path(*name), data))

    def _encode(self, partition: PartitionImage) -> bytes:
        # Partitions of one cluster are much alike: far fewer states than partitions.
        key = (partition.leader, partition.isr, partition.leader_epoch)
        data = self._encoded.get(key)
        if data is None:
            data = self._encoded[key] = layout.encode_state(layout.state_of(partition))
        return data
