"""Drafts a decision: the partitions after each write, the operations, and the brokers to notify.

Invariant: the state of a partition is written in steps. Each step requires the version that the
previous step has produced, and leaves a valid state for anyone who reads the tree between two
steps. Where Kafka's controller needs several steps (a dead leader leaves the ISR, then another
replica is elected), the epochs are incremented in the same way here.
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
"""Live brokers that are no longer replicas, but have not confirmed that they deleted their logs.

As in Kafka, they are listed in the topic's node until then (after a cancelled move, as both added
and removed). If another controller takes over, it finds an incomplete move and completes it with
the same StopReplica.
"""


class ControllerState(NamedTuple):
    """The controller's state that is not in the image: epoch version, settings and pending work."""

    epoch_version: int
    settings: Settings
    leaving: Mapping[int, int]  # brokers that are shutting down, with their broker epochs
    deleting: Set[str]
    topic_versions: Mapping[str, int]
    departing: Departing


class Draft:
    """A draft of one decision. Read and write partitions, and then call `decision` once."""

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
        """Create a draft.

        `brokers` are the live brokers, if the image does not list the right ones.
        """
        self.image = image
        self.brokers = image.brokers if brokers is None else brokers
        self.electable = frozenset(
            broker.broker_id
            for broker in self.brokers.values()
            if state.leaving.get(broker.broker_id) != broker.epoch
        )
        self.unclean_elections = 0
        self.because = ""
        """The reason for the next changes to partitions.

        It is empty if another machine provides the reason.
        """
        self.losses: Mapping[int, str] = {}
        """The reasons why brokers are no longer live, by broker id."""
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
        """Return a topic from the draft if it is there, otherwise from the image.

        The result is None if the topic is being deleted.
        """
        if name in self._state.deleting:
            return None
        changed = self._changed.get(name)
        return self.image.topics.get(name) if changed is None else changed[0]

    def topics(self) -> Iterator[TopicImage]:
        """Return the topics that are not being deleted."""
        deleting = self._state.deleting
        return (topic for topic in self.image.topics.values() if topic.name not in deleting)

    def topics_to_go(self) -> Iterator[TopicImage]:
        """Return the topics that are being deleted.

        They stay in the image until their names can be used again.
        """
        deleting = self._state.deleting
        return (topic for topic in self.image.topics.values() if topic.name in deleting)

    def get(self, name: TopicPartition) -> PartitionImage | None:
        """Return a partition in the state drafted so far, or None if its topic is being deleted."""
        topic = self.topic(name.topic)
        if topic is None:
            return None
        changed = self._changed.get(name.topic)
        return (topic.partitions if changed is None else changed[1]).get(name.partition)

    def take_up(self, topic: TopicImage) -> None:
        """Add a topic to the draft because it differs from the image or must be sent again."""
        self._changed[topic.name] = (topic, dict(topic.partitions))

    def put(self, name: TopicPartition, partition: PartitionImage) -> None:
        """Change the parts of a partition that are not stored in its state node."""
        changed = self._changed.get(name.topic)
        if changed is None:
            topic = self.image.topics[name.topic]
            changed = self._changed[name.topic] = (topic, dict(topic.partitions))
        changed[1][name.partition] = partition

    def write(
        self, name: TopicPartition, partition: PartitionImage, *, unclean: bool = False
    ) -> None:
        """Write one change. If `unclean` is set, the new leader may lack acknowledged records."""
        if self.because:
            reasons = self._reasons.setdefault(name, [])
            if self.because not in reasons:
                reasons.append(self.because)
        version = partition.partition_epoch
        # There is no state node before the first step (ZK-4).
        if version == NEVER_LED + 1:
            self._begin(name, partition)
        else:
            data = self._encode(partition)
            if unclean:
                # Kafka sets this mark, which is valid until the ISR changes again. Neither Kafka
                # nor this controller uses it.
                data = data.replace(b'"version":1,', _RECOVERING, 1)
            # This requires the version that the previous step has produced. If a leader has written
            # its ISR in the meantime (RE-9), the commit fails.
            written = store.Set(layout.state_path(*name), data, version - 1)
            self._operations.append(written)
        self.put(name, partition)

    def change(self, name: TopicPartition, partition: PartitionImage) -> None:
        """Write one change, and send LeaderAndIsr to the replicas."""
        self.write(name, partition)
        self._notified[name] = None

    def notify(self, name: TopicPartition, new: Container[int] = ()) -> None:
        """Send LeaderAndIsr to the replicas.

        The replicas in `new` cannot have any records of the partition yet.
        """
        self._notified[name] = None
        if new:
            self._new[name] = new

    def write_topic(self, name: str, *, first: bool = False) -> None:
        """Write the topic's node.

        If `first` is set, it is written before the operations drafted so far.
        """
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
        # Each decision writes the node only once, in its final state, because a second write would
        # not find the version that it requires.
        self._operations = [
            each
            for each in self._operations
            if not (isinstance(each, store.Set) and each.path == path)
        ]
        self._operations.insert(0 if first else len(self._operations), written)

    def _with_departing(self, topic: str, number: int, partition: PartitionImage) -> PartitionImage:
        """Return the partition in the form in which the topic's node stores it."""
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
        """Elect a leader if there is no live one, and return whether there is a leader now.

        The leader is a member of the ISR. If the topic allows it, or if `unclean` is set, it may be
        any live replica.
        """
        topic, partition = self.topic(name.topic), self.get(name)
        assert topic is not None and partition is not None
        if self.has_leader(partition):
            return True
        in_doubt = is_in_doubt(partition, self.brokers)
        # KIP-966: when an administrator requests an unclean election, the partition no longer
        # waits.
        if in_doubt and not unclean and waits_for_ends(topic, self.settings):
            return False
        elected = elect(partition, self.electable, self.epoch)
        if elected is None:
            # RE-11: unclean election requires unclean.leader.election.enable or an explicit request
            # (KIP-460).
            may = unclean or self.settings.is_unclean_allowed_for(topic)
            return may and self._lead_uncleanly(name, partition)
        self.change(name, elected)
        if partition.partition_epoch == NEVER_LED == partition.leader_epoch:
            # No replica can have a log of this partition yet, except if the leader epoch was
            # determined from the logs (ZK-6).
            self._new[name] = partition.replicas
        if in_doubt:
            self.note("led by the last in-sync replica, which may have lost records", name)
        return True

    def _lead_uncleanly(self, name: TopicPartition, partition: PartitionImage) -> bool:
        """Elect a replica that is not in sync. Return whether there is any live replica."""
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
        """Return whether any partition has changed or has to be stopped."""
        return bool(self._changed or self._stopped)

    def has_leader(self, partition: PartitionImage) -> bool:
        """Return whether the leader of the partition is live and has not lost its replica."""
        leader = partition.leader
        return leader in self.brokers and leader not in partition.offline_replicas

    def stop(self, broker_id: int, name: TopicPartition, *, delete: bool) -> None:
        """Tell a broker to stop hosting a partition."""
        if broker_id in self.brokers:
            self._stopped.setdefault((broker_id, delete), []).append(name)

    def departing(self, name: TopicPartition) -> tuple[int, ...]:
        """Return the brokers that have not yet confirmed that they deleted their logs."""
        drafted = self._departing.get(name)
        return self._state.departing.get(name, ()) if drafted is None else drafted

    def remove(self, broker_id: int, name: TopicPartition) -> None:
        """Tell a broker to delete its replica, which is no longer a replica of the partition.

        The topic's node must be written afterwards. It lists the broker until the broker has
        confirmed the deletion.
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
            # Ignore topics that are being deleted, because their nodes will be deleted completely.
            if self.topic(topic) is not None:
                self.write_topic(topic)

    def note(self, what: str, name: TopicPartition) -> None:
        """Add a note about a partition to the decision. The note is logged."""
        self._notes.setdefault(what, []).append(name)

    def operate(self, operations: Iterable[store.Operation]) -> None:
        """Add operations on nodes that are not partition states."""
        self._operations += operations

    def decision(
        self,
        *,
        newcomers: Set[int] = _NO_BROKERS,
    ) -> Decision:
        """Return the complete decision. Brokers that are newcomers are sent everything.

        LeaderAndIsr is sent before the update to all brokers, so that leaders know their role when
        the first client requests arrive. Before that, known brokers are sent the addresses of the
        new brokers, because the known brokers may have to follow the new ones, and new brokers are
        sent all topics. Topics that are being deleted are not sent.
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
            # Send all topics, even those that have not changed, because nothing has been sent to a
            # new registration yet.
            hosted.update(all_roles(staying, self._new, self._reasons, newcomers))
        for broker_id in self.brokers:
            states = tuple(hosted.get(broker_id, ()))
            if states:
                request = LeaderAndIsr(self.image.controller_id, self.epoch, states)
                requests.append(Send(broker_id, request))
        requests += self._stops()
        # If there are no newcomers, send the update even if no topic has changed, because the live
        # brokers have changed.
        if topics or not newcomers:
            requests += to_all(known, update)
        return self._fence(image, requests)

    def nothing(self) -> Decision:
        """Return a decision that neither changes anything nor notifies any broker."""
        return Decision((), self.image, ())

    def removal(self, names: Sequence[str]) -> Decision:
        """Return the complete decision, which also removes these topics from all brokers."""
        gone = self._update([], tuple(names))
        image = self.image.apply(self._update(self._topics()))
        return self._fence(image, [*to_all(self.brokers, gone), *self._stops()])

    def forgotten(self, names: Sequence[str]) -> Decision:
        """Return the complete decision, which also removes these topics.

        The brokers have already been notified.
        """
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
        """Return the leader epoch for a request that stops a replica.

        A deletion does not increment it.
        """
        # This is EpochDuringDelete in Kafka. The replica is deleted regardless of its leader epoch.
        if name.topic in self._state.deleting:
            return WHILE_DELETING
        partition = self.get(name)
        return NO_EPOCH if partition is None else partition.leader_epoch

    def _fence(self, image: ClusterImage, requests: Sequence[Send]) -> Decision:
        fenced: tuple[store.Operation, ...] = ()
        if self._operations:
            # ZK-3: if the controller has been replaced, its commit fails as a whole.
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
            # The election of the first leader is part of the creation of the topic.
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
        """Create the nodes for a new partition.

        For the first partition of a topic, also create the parent node.
        """
        topic = self._changed.get(name.topic)
        partitions = self.image.topics[name.topic].partitions if topic is None else topic[1]
        # The parent node is created only once, when none of the topic's partitions has a node.
        if all(each.partition_epoch == NEVER_LED for each in partitions.values()):
            self._operations.append(store.Create(layout.partitions_path(name.topic)))
        self._operations.append(store.Create(layout.partition_path(*name)))
        data = self._encode(partition)
        self._operations.append(store.Create(layout.state_path(*name), data))

    def _encode(self, partition: PartitionImage) -> bytes:
        # Many partitions have the same state, so there are far fewer states than partitions.
        key = (partition.leader, partition.isr, partition.leader_epoch)
        data = self._encoded.get(key)
        if data is None:
            data = self._encoded[key] = layout.encode_state(layout.state_of(partition))
        return data
