"""Drafts a decision: partitions after each write, operations, and brokers to notify.

Invariant: a partition's state is written in steps. Each step is conditional on the version that the
previous step produced, and leaves a valid state for anyone who reads the tree in between. Where
Kafka's controller takes several steps (a dead leader leaves the ISR, then another replica is
elected), the epochs here increase in the same way.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence, Set

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
from barnabas.controller.decision import (
    Changed,
    Decision,
    New,
    PartitionChange,
    Send,
    all_roles,
    note,
    roles,
    to_all,
)
from barnabas.controller.leader_election import Settings, elect, elect_unclean
from barnabas.controller.lost_log_ends import is_in_doubt, waits_for_ends
from barnabas.named_tuple import NamedTuple
from barnabas.types import TopicPartition

_RECOVERING = b'"version":1,"leader_recovery_state":1,'
_NO_BROKERS: Set[int] = frozenset()


Departing = Mapping[TopicPartition, tuple[int, ...]]
"""Live brokers that are no longer replicas and have not confirmed the deletion of their logs.

A topic's node keeps them until then, as in Kafka (those of a cancelled move as both added and
removed): a controller that takes over finds an incomplete move and completes it with the same
StopReplica.
"""


class ControllerState(NamedTuple):
    """The controller's state besides the image: epoch version, settings and pending work."""

    epoch_version: int
    settings: Settings
    leaving: Mapping[int, int]  # brokers that are shutting down, with their broker epochs
    deleting: Set[str]
    topic_versions: Mapping[str, int]
    departing: Departing


class Draft:
    """A draft of one decision: read and write partitions, then call `decision` once."""

    __slots__ = (
        "_changed",
        "_departing",
        "_encoded",
        "_new",
        "_notes",
        "_notified",
        "_operations",
        "_reasons",
        "_state",
        "_stopped",
        "_unclean",
        "because",
        "brokers",
        "electable",
        "image",
        "losses",
        "unclean_elections",
    )

    def __init__(
        self,
        image: ClusterImage,
        state: ControllerState,
        brokers: Mapping[int, BrokerImage] | None = None,
    ) -> None:
        """Create a draft. `brokers` are the live brokers, if they differ from the image's."""
        self.image = image
        self.brokers = image.brokers if brokers is None else brokers
        self.electable = frozenset(
            broker.broker_id
            for broker in self.brokers.values()
            if state.leaving.get(broker.broker_id) != broker.epoch
        )
        self.unclean_elections = 0
        self.because = ""
        """Why the next partitions change; empty if another machine explains the change."""
        self.losses: Mapping[int, str] = {}
        """Why brokers are no longer live, by broker id."""
        self._reasons: dict[TopicPartition, list[str]] = {}
        self._unclean: set[TopicPartition] = set()
        self._state = state
        self._operations: list[store.Operation] = []
        self._changed: Changed = {}
        self._notified: dict[TopicPartition, None] = {}
        self._new: New = {}
        self._departing: dict[TopicPartition, tuple[int, ...]] = {}
        self._stopped: dict[tuple[int, bool], list[TopicPartition]] = {}
        self._notes: dict[str, list[TopicPartition]] = {}
        self._encoded: dict[tuple[int, tuple[int, ...], int], bytes] = {}

    @property
    def epoch(self) -> int:
        return self.image.controller_epoch

    @property
    def settings(self) -> Settings:
        return self._state.settings

    def topic(self, name: str) -> TopicImage | None:
        """Return a topic from the draft, or else from the image; None if it is being deleted."""
        if name in self._state.deleting:
            return None
        changed = self._changed.get(name)
        return self.image.topics.get(name) if changed is None else changed[0]

    def topics(self) -> Iterator[TopicImage]:
        """Return the topics that are not being deleted."""
        deleting = self._state.deleting
        return (topic for topic in self.image.topics.values() if topic.name not in deleting)

    def topics_to_go(self) -> Iterator[TopicImage]:
        """Return the topics being deleted, which stay in the image until their names are free."""
        deleting = self._state.deleting
        return (topic for topic in self.image.topics.values() if topic.name in deleting)

    def get(self, name: TopicPartition) -> PartitionImage | None:
        """Return a partition as drafted so far, unless its topic is being deleted."""
        topic = self.topic(name.topic)
        if topic is None:
            return None
        changed = self._changed.get(name.topic)
        return (topic.partitions if changed is None else changed[1]).get(name.partition)

    def take_up(self, topic: TopicImage) -> None:
        """Add a topic that differs from the image or must be resent."""
        self._changed[topic.name] = (topic, dict(topic.partitions))

    def put(self, name: TopicPartition, partition: PartitionImage) -> None:
        """Change parts of a partition that its state node does not contain."""
        changed = self._changed.get(name.topic)
        if changed is None:
            topic = self.image.topics[name.topic]
            changed = self._changed[name.topic] = (topic, dict(topic.partitions))
        changed[1][name.partition] = partition

    def write(
        self, name: TopicPartition, partition: PartitionImage, *, unclean: bool = False
    ) -> None:
        """Write one change. With `unclean`, the leader may lack acknowledged records."""
        if self.because:
            reasons = self._reasons.setdefault(name, [])
            if self.because not in reasons:
                reasons.append(self.because)
        version = partition.partition_epoch
        # Before the first step, there is no state node (ZK-4).
        if version == NEVER_LED + 1:
            self._begin(name, partition)
        else:
            data = self._encode(partition)
            if unclean:
                # Kafka sets this mark until the ISR next changes, but neither Kafka nor this
                # controller uses it.
                data = data.replace(b'"version":1,', _RECOVERING, 1)
            # This is conditional on the version that the previous step produced: if a leader has
            # written its ISR in between (RE-9), the commit fails.
            written = store.Set(layout.state_path(*name), data, version - 1)
            self._operations.append(written)
        self.put(name, partition)

    def change(self, name: TopicPartition, partition: PartitionImage) -> None:
        """Write one change, and notify the replicas with LeaderAndIsr."""
        self.write(name, partition)
        self._notified[name] = None

    def notify(self, name: TopicPartition, new: Container[int] = ()) -> None:
        """Notify the replicas (LeaderAndIsr); replicas in `new` cannot have records of it yet."""
        self._notified[name] = None
        if new:
            self._new[name] = new

    def write_topic(self, name: str, *, first: bool = False) -> None:
        """Write the topic's node; with `first`, before the operations drafted so far."""
        topic, partitions = self._changed.get(name) or (
            self.image.topics[name],
            self.image.topics[name].partitions,
        )
        stored = {
            number: self._with_departing(name, number, each) for number, each in partitions.items()
        }
        node = layout.TopicNode(
            topic.topic_id,
            {number: each.replicas for number, each in stored.items()},
            {number: each.adding for number, each in stored.items() if each.adding},
            {number: each.removing for number, each in stored.items() if each.removing},
        )
        version = self._state.topic_versions.get(name, store.ANY_VERSION)
        path = layout.topic_path(name)
        written = store.Set(path, layout.encode_topic_node(node), version)
        # Write the node once per decision, in its final state: a second write would not match the
        # version that it expects.
        self._operations = [
            each
            for each in self._operations
            if not (isinstance(each, store.Set) and each.path == path)
        ]
        self._operations.insert(0 if first else len(self._operations), written)

    def _with_departing(self, topic: str, number: int, partition: PartitionImage) -> PartitionImage:
        """Return the partition as stored in the topic's node."""
        departing = self.departing(TopicPartition(topic, number))
        left = tuple(each for each in departing if each not in partition.replicas)
        if not left:
            return partition
        return partition._replace(
            replicas=(*partition.replicas, *left),
            adding=(*partition.adding, *left),
            removing=(*partition.removing, *left),
        )

    def lead(self, name: TopicPartition, *, unclean: bool = False) -> bool:
        """Elect a leader unless there is a live one; return whether there is a leader now.

        The leader is chosen from the ISR, or if the topic allows it or with `unclean`, from all
        live replicas.
        """
        topic, partition = self.topic(name.topic), self.get(name)
        assert topic is not None and partition is not None
        if self.has_leader(partition):
            return True
        in_doubt = is_in_doubt(partition, self.brokers)
        # KIP-966: an administrator's unclean election ends the wait.
        if in_doubt and not unclean and waits_for_ends(topic, self.settings):
            return False
        elected = elect(partition, self.electable, self.epoch)
        if elected is None:
            # RE-11: this requires unclean.leader.election.enable or a request (KIP-460).
            may = unclean or self.settings.is_unclean_allowed_for(topic)
            return may and self._lead_uncleanly(name, partition)
        self.change(name, elected)
        if partition.partition_epoch == NEVER_LED == partition.leader_epoch:
            # No replica can have a log of the partition yet, unless the leader epoch was taken from
            # the logs (ZK-6).
            self._new[name] = partition.replicas
        if in_doubt:
            self.note("led by the last in-sync replica, which may have lost records", name)
        return True

    def _lead_uncleanly(self, name: TopicPartition, partition: PartitionImage) -> bool:
        """Elect a replica that is not in sync, and return whether any replica is live."""
        elected = elect_unclean(partition, self.electable, self.epoch)
        if elected is None:
            return False
        self.write(name, elected, unclean=True)
        self.notify(name)
        self.unclean_elections += 1
        self._unclean.add(name)
        self._reasons.setdefault(name, []).append("no in-sync replica is live (unclean election)")
        what = "led by a replica that was not in sync (unclean election); records may be lost"
        self.note(what, name)
        return True

    @property
    def has_changed(self) -> bool:
        """Whether any partition has changed or must be stopped."""
        return bool(self._changed or self._stopped)

    def has_leader(self, partition: PartitionImage) -> bool:
        """Return whether the partition's leader is live and its replica is online."""
        leader = partition.leader
        return leader in self.brokers and leader not in partition.offline_replicas

    def stop(self, broker_id: int, name: TopicPartition, *, delete: bool) -> None:
        """Make a broker stop hosting a partition."""
        if broker_id in self.brokers:
            self._stopped.setdefault((broker_id, delete), []).append(name)

    def departing(self, name: TopicPartition) -> tuple[int, ...]:
        """Return the brokers that have yet to confirm the deletion of their logs."""
        drafted = self._departing.get(name)
        return self._state.departing.get(name, ()) if drafted is None else drafted

    def remove(self, broker_id: int, name: TopicPartition) -> None:
        """Make a broker delete its replica, which no longer belongs to the partition.

        The topic's node, which must be written after this, lists the broker until it confirms.
        """
        if broker_id in self.brokers:
            self.stop(broker_id, name, delete=True)
            self._departing[name] = (*dict.fromkeys((*self.departing(name), broker_id)),)

    def on_departed(self, brokers: Container[int], names: Iterable[TopicPartition]) -> None:
        """Record that these brokers have deleted their logs of the partitions, or are gone."""
        topics: dict[str, None] = {}
        for name in names:
            before = self.departing(name)
            left = tuple(each for each in before if each not in brokers)
            if left != before:
                self._departing[name] = left
                topics[name.topic] = None
        for topic in topics:
            # Skip topics being deleted, because their nodes are deleted as a whole.
            if self.topic(topic) is not None:
                self.write_topic(topic)

    def note(self, what: str, name: TopicPartition) -> None:
        """Add a note about a partition for the log."""
        self._notes.setdefault(what, []).append(name)

    def operate(self, operations: Iterable[store.Operation]) -> None:
        """Add operations on nodes other than partition states."""
        self._operations += operations

    def decision(
        self,
        *,
        newcomers: Set[int] = _NO_BROKERS,
    ) -> Decision:
        """Return the whole decision. Newcomers are sent everything.

        LeaderAndIsr precedes the update to all brokers, so that leaders know their role before
        clients send requests. Before that, known brokers are sent the addresses of new brokers,
        which they may have to follow, and new brokers are sent all topics. Topics being deleted are
        not sent.
        """
        changed, deleting = self._topics(), self._state.deleting
        image = self.image.apply(self._update(changed))
        topics = [topic for topic in changed if topic.name not in deleting]
        update = self._update(topics)
        known = [broker_id for broker_id in self.brokers if broker_id not in newcomers]
        requests: list[Send] = []
        if newcomers:
            requests += to_all(known, self._update([]))
        hosted = roles(self._changed, self._notified, self._new, self._reasons, known)
        if newcomers:
            staying = [topic for topic in image.topics.values() if topic.name not in deleting]
            requests += to_all(sorted(newcomers), self._update(staying))
            # Send all topics, changed or not, because nothing has been sent to a new registration
            # yet.
            hosted.update(all_roles(staying, self._new, self._reasons, newcomers))
        for broker_id in self.brokers:
            states = tuple(hosted.get(broker_id, ()))
            if states:
                request = LeaderAndIsr(self.image.controller_id, self.epoch, states)
                requests.append(Send(broker_id, request))
        requests += self._stops()
        # Without newcomers, the update is sent even if no topic has changed, because the live
        # brokers have.
        if topics or not newcomers:
            requests += to_all(known, update)
        return self._fence(image, requests)

    def nothing(self) -> Decision:
        """Return a decision that changes nothing and notifies no broker."""
        return Decision((), self.image, ())

    def removal(self, names: Sequence[str]) -> Decision:
        """Return the whole decision, with these topics removed from the brokers' metadata."""
        gone = self._update([], tuple(names))
        image = self.image.apply(self._update(self._topics()))
        return self._fence(image, [*to_all(self.brokers, gone), *self._stops()])

    def forgotten(self, names: Sequence[str]) -> Decision:
        """Return the whole decision, with these topics removed; brokers were notified earlier."""
        return self._fence(self.image.apply(self._update([], tuple(names))), [])

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
        """Return the leader epoch for stopping a replica; a deletion does not raise it."""
        # This is Kafka's EpochDuringDelete: the receiver deletes the replica regardless of the
        # leader epoch.
        if name.topic in self._state.deleting:
            return WHILE_DELETING
        partition = self.get(name)
        return NO_EPOCH if partition is None else partition.leader_epoch

    def _fence(self, image: ClusterImage, requests: Sequence[Send]) -> Decision:
        fenced: tuple[store.Operation, ...] = ()
        if self._operations:
            # ZK-3: the commit of a controller that has been replaced fails as a whole.
            fence = store.Check(layout.CONTROLLER_EPOCH, self._state.epoch_version)
            fenced = (fence, *self._operations)
        notes = tuple(note(what, names) for what, names in self._notes.items())
        return Decision(
            fenced,
            image,
            tuple(requests),
            self.unclean_elections,
            notes,
            self._departing,
            tuple(self._partition_changes(image)),
            self.losses,
        )

    def _partition_changes(self, image: ClusterImage) -> Iterator[PartitionChange]:
        for name, reasons in self._reasons.items():
            before, after = self.image.topics.get(name.topic), image.topics.get(name.topic)
            if before is None or after is None:
                continue
            was, became = before.partitions.get(name.partition), after.partitions[name.partition]
            # Electing the first leader is part of creating the topic.
            if was is None or was.partition_epoch == NEVER_LED:
                continue
            yield PartitionChange(name, was, became, ", ".join(reasons), name in self._unclean)

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
        """Create the nodes of a new partition; for the topic's first one, the parent node too."""
        topic = self._changed.get(name.topic)
        partitions = self.image.topics[name.topic].partitions if topic is None else topic[1]
        # Create the parent node once, when no partition of this topic has a node yet.
        if all(each.partition_epoch == NEVER_LED for each in partitions.values()):
            self._operations.append(store.Create(layout.partitions_path(name.topic)))
        self._operations.append(store.Create(layout.partition_path(*name)))
        data = self._encode(partition)
        self._operations.append(store.Create(layout.state_path(*name), data))

    def _encode(self, partition: PartitionImage) -> bytes:
        # Many partitions share the same state: there are far fewer states than partitions.
        key = (partition.leader, partition.isr, partition.leader_epoch)
        data = self._encoded.get(key)
        if data is None:
            data = self._encoded[key] = layout.encode_state(layout.state_of(partition))
        return data
