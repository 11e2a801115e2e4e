"""Implements the controller, which turns events into metadata operations and broker requests.

The controller is a pure machine whose log is the metadata store. Each event results in a Decision:
operations to commit under the controller epoch's version (a deposed controller's commit fails as a
whole), the image after them, and the requests that notify the brokers. The driver commits first,
then calls `apply`, then sends. If the commit fails, nothing has changed anywhere.

Invariant: `image` is the committed state. Apart from it, the machine keeps only requests (which
brokers are shutting down, which topics are to be deleted), the brokers excluded because of their
versions (which the image omits, as if they were not live), log ends, and counts. A topic is deleted
in Kafka's order, and each step can be repeated after a crash: first its leaders are removed, then
every replica, then its nodes, and last the deletion request.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence

from barnabas.cluster import layout
from barnabas.cluster.controller_requests import IsrAnswer, IsrProposal
from barnabas.cluster.image import (
    NEVER_LED,
    NO_LEADER,
    BrokerImage,
    ClusterImage,
    TopicImage,
)
from barnabas.cluster.store import Delete, Set
from barnabas.controller import broker_changes, isr, preferred_leader, reassignment
from barnabas.controller.broker_versions import Versions, why_left_out
from barnabas.controller.counts import Counts, count, ends_wanted, offline
from barnabas.controller.decision import Decision, Send
from barnabas.controller.decision_draft import ControllerState, Draft
from barnabas.controller.isr import Written
from barnabas.controller.leader_election import Settings, without
from barnabas.controller.lost_log_ends import Ends, KnownEnds, LogEnd
from barnabas.errors import (
    BrokerIdNotRegistered,
    ElectionNotNeeded,
    KafkaError,
    StaleBrokerEpoch,
)
from barnabas.types import TopicPartition

__all__ = ["Controller", "Decision", "LogEnd", "Send", "Settings"]

_NOT_SENT = -1
_TOPIC = f"{layout.TOPICS}/"


class Controller:
    """The controller's machine, which decides from its election to its resignation."""

    __slots__ = (
        "_counted",
        "_deleting",
        "_departing",
        "_ends",
        "_epoch_version",
        "_leaving",
        "_left_out",
        "_settings",
        "_topic_versions",
        "_wanted",
        "image",
        "unclean_elections",
    )

    def __init__(
        self, epoch_version: int, image: ClusterImage, settings: Settings | None = None
    ) -> None:
        """Create the machine. `image` is the loaded tree, including this controller and its epoch.

        `epoch_version` is the data version of `/controller_epoch` since this controller's election.
        """
        self._epoch_version = epoch_version
        self._settings = Settings() if settings is None else settings
        self._leaving: dict[int, int] = {}  # brokers that are shutting down, with their epochs
        # excluded brokers, with their epochs and the reasons
        self._left_out: dict[int, tuple[int, str]] = {}
        self._deleting: set[str] = set()
        self._departing: dict[TopicPartition, tuple[int, ...]] = {}
        self._ends = KnownEnds()
        self._counted: tuple[ClusterImage, Counts] | None = None
        self._wanted: tuple[ClusterImage, frozenset[TopicPartition]] | None = None
        self.image = image
        self._topic_versions: dict[str, int] = {}
        self.unclean_elections = 0
        """How many elected leaders were not in sync (RE-11)."""

    def topic_nodes_read(self, versions: Mapping[str, int]) -> None:
        """Record the data versions at which topic nodes were read.

        A topic's node is written only at that version or, if it was never read, at any version.
        """
        self._topic_versions.update(versions)

    # --- failover -------------------------------------------------------------------------------

    def on_elected(self, deleting: Iterable[str]) -> Decision:
        """Fail over: elect leaders where possible, and send every broker all remaining topics."""
        self._deleting = set(deleting)
        draft = self._draft()
        # It is unknown what an earlier controller sent to which brokers, so update each partition,
        # and send all partitions, changed or not.
        doubtful = {each.broker_id for each in self.image.brokers.values() if each.may_have_lost}
        for topic in draft.topics():
            draft.take_up(topic)
            for number in topic.partitions:
                name = TopicPartition(topic.name, number)
                broker_changes.fail_over(draft, name, doubtful)
                draft.notify(name)
        # A broker that started without a controller must be sent the topics before the brokers.
        return draft.decision(newcomers=self.image.brokers.keys() - {self.image.controller_id})

    def configure(self, settings: Settings) -> None:
        """Apply the cluster's new defaults; work in progress then uses them."""
        self._settings = settings
        self._counted = self._wanted = None

    def apply(self, decision: Decision) -> None:
        """Apply a decision whose operations have been committed."""
        self.image = decision.image
        self.unclean_elections += decision.unclean_elections
        if decision.departing:
            self._departing.update(decision.departing)
            self._forget_departed()
        if self._topic_versions:
            for operation in decision.operations:
                # A commit raises the data version of each node that it sets by one.
                if isinstance(operation, Set):
                    name = operation.path.removeprefix(_TOPIC)
                    if name in self._topic_versions:
                        self._topic_versions[name] += 1

    # --- topics ----------------------------------------------------------------------------------

    def topics_added(self, topics: Sequence[TopicImage]) -> Decision:
        """Elect the first leader of each partition of these new topics."""
        return self._lead(topics, "the topic is new", notifies_all=True)

    def partitions_added(self, topics: Sequence[TopicImage]) -> Decision:
        """Elect leaders for partitions added to these topics, without changing other partitions."""
        return self._lead(topics, "partitions were added", notifies_all=False)

    def configs_changed(self, configs: Mapping[str, Mapping[str, str]]) -> Decision:
        """Send topics' changed configs to every broker.

        Partitions without a leader get one if the new configs allow it.
        """
        return self._lead(
            [self.image.topics[name]._replace(config=config) for name, config in configs.items()],
            "the topic's configs allow it now",
            notifies_all=False,
        )

    def deletions_requested(self, names: Iterable[str]) -> Decision:
        """Start deleting topics: remove their leaders, and make brokers delete the replicas.

        The image keeps the topics, without leaders, while their names are taken.
        """
        names = list(names)
        topics = [topic for topic in map(self.with_departing, names) if topic is not None]
        # Drafts then ignore these topics, so they have no elections or reassignments.
        self._deleting.update(names)
        return _abandon(self._draft(), topics)

    def with_departing(self, name: str) -> TopicImage | None:
        """Return the topic with its departing brokers, so that its deletion covers their logs."""
        topic = self.image.topics.get(name)
        if topic is None or not self._departing:
            return topic
        partitions = {
            number: each._replace(
                replicas=tuple(
                    dict.fromkeys(
                        (*each.replicas, *self._departing.get(TopicPartition(name, number), ()))
                    )
                )
            )
            for number, each in topic.partitions.items()
        }
        return topic._replace(partitions=partitions)

    def replicas_deleted(self, names: Iterable[str], paths: Iterable[str]) -> Decision:
        """Finish deletions: delete all nodes in `paths` (children first, the request last)."""
        names = tuple(names)
        self._deleting.difference_update(names)
        self._forget_departed(names)
        draft = self._draft()
        draft.operate(Delete(path) for path in paths)
        return draft.forgotten(names)

    # --- brokers ---------------------------------------------------------------------------------

    def brokers_changed(self, live: Mapping[int, BrokerImage]) -> Decision:
        """React to a change of live brokers: failed ones stop leading; new ones get the full state.

        A changed registration counts as a failure followed by a start. An excluded broker is not
        live.
        """
        self._left_out = {
            broker_id: left_out
            for broker_id, left_out in self._left_out.items()
            if broker_id in live and live[broker_id].epoch == left_out[0]
        }
        return self._brokers_changed(
            {each: broker for each, broker in live.items() if each not in self._left_out}
        )

    def _brokers_changed(self, live: Mapping[int, BrokerImage]) -> Decision:
        before = self.image.brokers
        # A watch can fire when nothing relevant has changed.
        if live == before:
            return self._draft().nothing()
        gone = {
            broker_id
            for broker_id, broker in before.items()
            # KIP-903: another epoch means that the broker restarted, even if its absence was never
            # noticed.
            if broker_id not in live or live[broker_id].epoch != broker.epoch
        }
        come = {broker_id for broker_id in live if broker_id in gone or broker_id not in before}
        # These brokers have withdrawn the warning that they may have lost records.
        trusted = {
            broker_id
            for broker_id, broker in before.items()
            if broker.may_have_lost and broker_id in live and not live[broker_id].may_have_lost
        }
        draft = self._draft(live)
        draft.losses = {each: self._why_gone(before[each], live) for each in sorted(gone)}
        # A broker that is gone cannot confirm. Any logs left on it will be strays when it returns.
        draft.on_departed(gone, list(self._departing))
        broker_changes.brokers_changed(draft, gone, come, trusted)
        # sorted, because a set has no fixed order
        names = sorted(self._deleting & self.image.topics.keys())
        # A broker that has returned may still have replicas of topics being deleted, so send it the
        # same StopReplica again.
        leaving = [self.image.topics[each] for each in names]
        _stop_replicas(draft, leaving, come)
        return draft.decision(newcomers=come)

    def _why_gone(self, broker: BrokerImage, live: Mapping[int, BrokerImage]) -> str:
        broker_id = broker.broker_id
        if broker_id in self._left_out and self._left_out[broker_id][0] == broker.epoch:
            return f"broker {broker_id} is left out because of its version"
        if self._leaving.get(broker_id) == broker.epoch:
            return f"broker {broker_id} has stopped after its controlled shutdown"
        if broker_id in live:
            return f"broker {broker_id} failed and re-registered"
        return f"broker {broker_id} failed: its session ended"

    def versions_known(self, broker_id: int, broker_epoch: int, versions: Versions) -> Decision:
        """Note a broker's supported versions.

        If they are too old, the broker is excluded, and treated as failed until it re-registers.

        A report for an earlier registration is ignored, because the broker may have been upgraded
        since.
        """
        draft = self._draft()
        broker = self.image.brokers.get(broker_id)
        if broker is None or broker.epoch != broker_epoch or broker_id == self.image.controller_id:
            return draft.nothing()
        reason = why_left_out(broker_id, versions)
        if reason is None:
            return draft.nothing()
        self._left_out[broker_id] = (broker_epoch, reason)
        others = {each: known for each, known in self.image.brokers.items() if each != broker_id}
        decision = self._brokers_changed(others)
        return decision._replace(notes=(reason, *decision.notes))

    def awaits(self, broker_id: int, name: TopicPartition) -> bool:
        """Return whether the broker has yet to confirm that it deleted its log of the partition."""
        return broker_id in self._departing.get(name, ())

    def _forget_departed(self, gone: Container[str] = ()) -> None:
        """Keep only partitions with an unconfirmed log deletion, except of topics in `gone`."""
        self._departing = {
            name: brokers
            for name, brokers in self._departing.items()
            if brokers and name.topic not in gone
        }

    def logs_deleted(self, broker_id: int, names: Iterable[TopicPartition]) -> Decision:
        """Record that a broker has deleted its logs of partitions that moved away from it."""
        draft = self._draft()
        draft.on_departed((broker_id,), names)
        return draft.forgotten(())

    def replicas_offline(
        self, broker_id: int, names: Iterable[TopicPartition], broker_epoch: int = _NOT_SENT
    ) -> Decision:
        """React to the loss of these replicas on a live broker, with one of its log directories.

        Another ISR member leads; if there is none, there is no leader until the replicas are back.
        The broker itself is also notified: if only a log was damaged, it starts an empty one once
        another replica leads. A loss in an earlier registration is ignored, because the disk may
        have recovered; if not, the broker reports it again.
        """
        draft = self._draft()
        broker = self.image.brokers.get(broker_id)
        # Ignore a report from an earlier registration.
        if broker is None or broker_epoch not in (_NOT_SENT, broker.epoch):
            return draft.nothing()
        broker_changes.replicas_offline(draft, broker_id, names)
        return draft.decision() if draft.has_changed else draft.nothing()

    def replicas_online(
        self, broker_id: int, names: Iterable[TopicPartition], broker_epoch: int
    ) -> Decision:
        """React to a live broker that hosts lost replicas again.

        A damaged log starts empty once another replica leads. The replicas may join the ISR, and
        partitions that waited for them get a leader.
        """
        draft = self._draft()
        broker = self.image.brokers.get(broker_id)
        if broker is None or broker.epoch != broker_epoch:
            return draft.nothing()
        broker_changes.replicas_online(draft, broker_id, names)
        return draft.decision() if draft.has_changed else draft.nothing()

    def shutdown_requested(
        self, broker_id: int, broker_epoch: int = _NOT_SENT
    ) -> tuple[Decision, list[TopicPartition]]:
        """Handle a controlled shutdown: if possible, other brokers lead, and the broker leaves the
        ISRs.

        Returns the partitions that the broker still leads, of those with other replicas. The broker
        is not elected again until it re-registers. Raises BrokerIdNotRegistered or
        StaleBrokerEpoch.
        """
        broker = self.image.brokers.get(broker_id)
        if broker is None:
            raise BrokerIdNotRegistered(f"broker {broker_id} is not registered")
        if broker_epoch not in (_NOT_SENT, broker.epoch):
            raise StaleBrokerEpoch(
                f"broker {broker_id} is registered in epoch {broker.epoch}, not {broker_epoch}"
            )
        # The key includes the broker epoch: after a restart, the broker can be elected again.
        self._leaving[broker_id] = broker.epoch
        draft = self._draft()
        remaining = broker_changes.leave(draft, broker_id)
        return _decision_of(draft), remaining

    # --- partitions ------------------------------------------------------------------------------

    def isr_proposed(
        self, broker_id: int, broker_epoch: int, proposals: Iterable[IsrProposal]
    ) -> tuple[Decision, dict[TopicPartition, IsrAnswer]]:
        """Decide on a leader's proposed ISRs.

        The responses are valid once the decision is committed.
        """
        by_name = {proposal.topic_partition: proposal for proposal in proposals}
        draft = self._draft()
        broker = self.image.brokers.get(broker_id)
        if broker is None or broker.epoch != broker_epoch:
            stale = IsrAnswer(StaleBrokerEpoch.code)
            return draft.nothing(), dict.fromkeys(by_name, stale)
        answers = isr.decide(draft, broker_id, by_name)
        return _decision_of(draft), answers

    def states_read(self, written: Mapping[TopicPartition, Written]) -> bool:
        """Adopt state nodes that leaders have written (RE-9), and return whether any has changed.

        They are already committed, so they enter the image immediately. This notifies no broker.
        """
        draft = self._draft()
        has_changed = isr.take_over(draft, written)
        if has_changed:
            # Do not use `apply`, because there is nothing to commit and this decision's requests
            # are not sent.
            self.image = draft.decision().image
        return has_changed

    def isrs_announced(self, names: Iterable[TopicPartition]) -> Decision:
        """Notify brokers of ISRs that leaders changed themselves and `states_read` adopted."""
        draft = self._draft()
        isr.notify(draft, names)
        return _decision_of(draft)

    def elect_leaders(
        self, names: Iterable[TopicPartition] | None, *, unclean: bool
    ) -> tuple[Decision, dict[TopicPartition, KafkaError | None]]:
        """Elect preferred leaders or, with `unclean`, any replica if there is no leader (KIP-460).

        None means all partitions; the response then omits those that need no election.
        """
        draft = self._draft()
        requested = (
            preferred_leader.all_partitions(draft) if names is None else dict.fromkeys(names)
        )
        kind = "unclean" if unclean else "preferred"
        draft.because = f"an administrator requested an election of {kind} leaders"
        elect = preferred_leader.elect_any if unclean else preferred_leader.elect_preferred
        outcomes = {name: elect(draft, name) for name in requested}
        if names is None:
            outcomes = {
                name: error
                for name, error in outcomes.items()
                # As in Kafka, the response to an election for all partitions omits these.
                if not isinstance(error, ElectionNotNeeded)
            }
        return _decision_of(draft), outcomes

    def rebalance_leaders(self, max_imbalance_percent: int) -> Decision:
        """Elect preferred leaders for brokers that lead too few of their own partitions."""
        draft = self._draft()
        draft.because = "its preferred leader led too few of its partitions (automatic rebalance)"
        preferred_leader.rebalance(draft, max_imbalance_percent)
        return _decision_of(draft)

    def reassign(
        self, requested: Mapping[TopicPartition, Sequence[int] | None]
    ) -> tuple[Decision, dict[TopicPartition, KafkaError | None]]:
        """Move partitions to these replicas, or (None) cancel the move (KIP-455)."""
        draft = self._draft()
        outcomes: dict[TopicPartition, KafkaError | None] = {}
        for name, replicas in requested.items():
            draft.because = (
                "an administrator cancelled the reassignment"
                if replicas is None
                else "an administrator requested a reassignment"
            )
            try:
                targets = None if replicas is None else tuple(replicas)
                reassignment.reassign(draft, name, targets)
            except KafkaError as error:
                # The traceback would keep the whole request in memory.
                outcomes[name] = error.with_traceback(None)
            else:
                outcomes[name] = None
        for topic in dict.fromkeys(name.topic for name, error in outcomes.items() if not error):
            # Write the topic's node first. If another controller takes over between two commits, it
            # then finds the replicas and completes the reassignment (KIP-455).
            draft.write_topic(topic, first=True)
        return _decision_of(draft), outcomes

    @property
    def ends_wanted(self) -> frozenset[TopicPartition]:
        """The partitions for which an election needs the log ends of all replicas."""
        if self._wanted is None or self._wanted[0] is not self.image:
            self._wanted = (self.image, ends_wanted(self._draft()))
        return self._wanted[1]

    def ends_known(self, ends: Ends) -> Decision:
        """Note some replicas' log ends.

        When all log ends of a partition are known, the replica with the largest one leads.
        """
        draft = self._draft()
        draft.because = "the log ends of all replicas are known, and the longest log leads"
        for name in sorted(self.ends_wanted):
            # Sort by name, because a set's order would differ from run to run.
            if name in ends:
                self._ends.add(draft, name, ends[name])
                self._ends.lead_by(draft, name)
        return _decision_of(draft)

    # --- queries ---------------------------------------------------------------------------------

    @property
    def epoch(self) -> int:
        return self.image.controller_epoch

    @property
    def left_out(self) -> tuple[str, ...]:
        """Why registered brokers are excluded, ordered by broker id."""
        return tuple(reason for _, (_, reason) in sorted(self._left_out.items()))

    @property
    def offline_partitions(self) -> frozenset[TopicPartition]:
        """The partitions without a live leader, computed on each call."""
        return offline(self._draft())

    @property
    def counts(self) -> Counts:
        """The counts over all partitions, computed once per image."""
        if self._counted is None or self._counted[0] is not self.image:
            self._counted = (self.image, count(self._draft()))
        return self._counted[1]

    def _lead(self, topics: Sequence[TopicImage], because: str, *, notifies_all: bool) -> Decision:
        """Elect leaders where none is live, and send these topics to the brokers.

        LeaderAndIsr is sent for partitions with an election or, with `notifies_all`, for all.
        """
        draft = self._draft()
        draft.because = because
        for topic in topics:
            # A topic that is being deleted never gets a leader again.
            if topic.name in self._deleting:
                continue
            draft.take_up(topic)
            for number in topic.partitions:
                name = TopicPartition(topic.name, number)
                draft.lead(name)
                if notifies_all:
                    draft.notify(name)
        return draft.decision()

    def _draft(self, brokers: Mapping[int, BrokerImage] | None = None) -> Draft:
        state = ControllerState(
            self._epoch_version,
            self._settings,
            self._leaving,
            self._deleting,
            self._topic_versions,
            self._departing,
        )
        return Draft(self.image, state, brokers)


def _decision_of(draft: Draft) -> Decision:
    return draft.decision() if draft.has_changed else draft.nothing()


# --- deletion ------------------------------------------------------------------------------------


def _abandon(draft: Draft, topics: Sequence[TopicImage]) -> Decision:
    """Remove the leaders and make live brokers delete replicas. The image keeps the topics."""
    for topic in topics:
        draft.take_up(topic)
        for number, partition in topic.partitions.items():
            # A partition that was never led has no state node to write; one without a leader is
            # already in its final state.
            if partition.partition_epoch == NEVER_LED or partition.leader == NO_LEADER:
                continue
            for replica in partition.replicas:
                if replica in partition.isr:
                    partition = without(partition, replica, draft.epoch)
                    draft.write(TopicPartition(topic.name, number), partition)
    _stop_replicas(draft, topics, draft.brokers)
    return draft.removal([topic.name for topic in topics])


def _stop_replicas(draft: Draft, topics: Iterable[TopicImage], broker_ids: Iterable[int]) -> None:
    """Make these brokers delete their replicas of the topics."""
    topics = list(topics)
    for broker_id in broker_ids:
        for topic in topics:
            for number, partition in topic.partitions.items():
                if broker_id in partition.replicas:
                    draft.stop(broker_id, TopicPartition(topic.name, number), delete=True)
