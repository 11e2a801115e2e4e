"""Implements the controller, which turns events into metadata operations and requests to brokers.

The controller is a pure machine whose log is the metadata store. For each event, it returns a
Decision: operations to commit, the image that results from them, and requests that notify the
brokers. Each commit checks the version of the controller epoch, so the commit of a deposed
controller fails as a whole. The driver commits first, then calls `apply`, and then sends the
requests. If the commit fails, nothing has changed anywhere.

Invariant: `image` is the committed state. In addition, the machine stores pending requests (which
brokers are shutting down, and which topics are to be deleted), log ends, counts, and the brokers
that are excluded because of their versions. The image does not contain the excluded brokers, as if
they were not live. A topic is deleted in the same order as in Kafka, and each step can be repeated
after a crash: first its leaders are removed, then all replicas, then the topic's nodes, and finally
the deletion request.
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
    """The state machine of one controller, from its election until it resigns."""

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
        """Create the machine.

        `image` is the tree that was loaded; it contains this controller and its epoch.

        `epoch_version` is the data version that `/controller_epoch` has had since this controller
        was elected.
        """
        self._epoch_version = epoch_version
        self._settings = Settings() if settings is None else settings
        self._leaving: dict[int, int] = {}  # brokers that are shutting down, with epochs
        # the excluded brokers, with their epochs and the reasons for excluding them
        self._left_out: dict[int, tuple[int, str]] = {}
        self._deleting: set[str] = set()
        self._departing: dict[TopicPartition, tuple[int, ...]] = {}
        self._ends = KnownEnds()
        self._counted: tuple[ClusterImage, Counts] | None = None
        self._wanted: tuple[ClusterImage, frozenset[TopicPartition]] | None = None
        self.image = image
        self._topic_versions: dict[str, int] = {}
        self.unclean_elections = 0
        """The number of elected leaders that were not in sync (RE-11)."""

    def topic_nodes_read(self, versions: Mapping[str, int]) -> None:
        """Record the data versions that the nodes of topics had when they were read.

        The node of a topic is written only if it still has that version. If the node was never
        read, any version is accepted.
        """
        self._topic_versions.update(versions)

    # --- failover -------------------------------------------------------------------------------

    def on_elected(self, deleting: Iterable[str]) -> Decision:
        """Take over: elect leaders where possible, and send every broker all remaining topics."""
        self._deleting = set(deleting)
        draft = self._draft()
        # It is not known what an earlier controller sent to which broker, so every partition is
        # updated, and all partitions are sent, even if they have not changed.
        doubtful = {each.broker_id for each in self.image.brokers.values() if each.may_have_lost}
        for topic in draft.topics():
            draft.take_up(topic)
            for number in topic.partitions:
                name = TopicPartition(topic.name, number)
                broker_changes.fail_over(draft, name, doubtful)
                draft.notify(name)
        # A broker that was started while there was no controller must receive the topics before it
        # receives the list of brokers.
        return draft.decision(newcomers=self.image.brokers.keys() - {self.image.controller_id})

    def configure(self, settings: Settings) -> None:
        """Set new defaults for the cluster. They also apply to work that is in progress."""
        self._settings = settings
        self._counted = self._wanted = None

    def apply(self, decision: Decision) -> None:
        """Apply a decision after its operations have been committed."""
        self.image = decision.image
        self.unclean_elections += decision.unclean_elections
        if decision.departing:
            self._departing.update(decision.departing)
            self._forget_departed()
        if self._topic_versions:
            for operation in decision.operations:
                # The commit has incremented the data version of each node that it set.
                if isinstance(operation, Set):
                    name = operation.path.removeprefix(_TOPIC)
                    if name in self._topic_versions:
                        self._topic_versions[name] += 1

    # --- topics ----------------------------------------------------------------------------------

    def topics_added(self, topics: Sequence[TopicImage]) -> Decision:
        """Elect the first leader of every partition of these new topics."""
        return self._lead(topics, "the topic is new", notifies_all=True)

    def partitions_added(self, topics: Sequence[TopicImage]) -> Decision:
        """Elect leaders for the partitions that were added to these topics.

        Other partitions do not change.
        """
        return self._lead(topics, "partitions were added", notifies_all=False)

    def configs_changed(self, configs: Mapping[str, Mapping[str, str]]) -> Decision:
        """Send the changed configs of these topics to every broker.

        If a partition has no leader, the new configs may make it possible to elect one.
        """
        return self._lead(
            [self.image.topics[name]._replace(config=config) for name, config in configs.items()],
            "the topic's configs allow it now",
            notifies_all=False,
        )

    def deletions_requested(self, names: Iterable[str]) -> Decision:
        """Start to delete topics: remove their leaders, and tell brokers to delete the replicas.

        The topics stay in the image, without leaders, until their names can be used again.
        """
        names = list(names)
        topics = [topic for topic in map(self.with_departing, names) if topic is not None]
        # From now on, drafts ignore these topics, so there are no elections or reassignments for
        # them.
        self._deleting.update(names)
        return _abandon(self._draft(), topics)

    def with_departing(self, name: str) -> TopicImage | None:
        """Return the topic, including departing brokers, so that their logs are deleted too."""
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
        """Handle a change of live brokers: failed ones stop leading, and new ones get all state.

        If the registration of a broker has changed, the broker is treated as failed and then
        started. An excluded broker is not live.
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
        # A watch may fire although nothing relevant has changed.
        if live == before:
            return self._draft().nothing()
        gone = {
            broker_id
            for broker_id, broker in before.items()
            # KIP-903: if the epoch differs, the broker has restarted, even if no broker noticed
            # that it was gone.
            if broker_id not in live or live[broker_id].epoch != broker.epoch
        }
        come = {broker_id for broker_id in live if broker_id in gone or broker_id not in before}
        # These brokers no longer warn that they may have lost records.
        trusted = {
            broker_id
            for broker_id, broker in before.items()
            if broker.may_have_lost and broker_id in live and not live[broker_id].may_have_lost
        }
        draft = self._draft(live)
        draft.losses = {each: self._why_gone(before[each], live) for each in sorted(gone)}
        # A broker that is gone cannot confirm the deletion. If it still has logs when it returns,
        # they are strays.
        draft.on_departed(gone, list(self._departing))
        broker_changes.brokers_changed(draft, gone, come, trusted)
        # sort them, because the order of a set varies
        names = sorted(self._deleting & self.image.topics.keys())
        # A broker that returns may still have replicas of topics that are being deleted, so it is
        # sent the same StopReplica again.
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
        """Record which versions a broker supports.

        If they are too old, the broker is excluded, which means that it is treated as failed until
        it registers again.

        A report for an earlier registration is ignored, because the broker may have been upgraded
        in the meantime.
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
        """Keep only partitions that lack a confirmation and whose topic is not in `gone`."""
        self._departing = {
            name: brokers
            for name, brokers in self._departing.items()
            if brokers and name.topic not in gone
        }

    def logs_deleted(self, broker_id: int, names: Iterable[TopicPartition]) -> Decision:
        """Record that a broker has deleted its logs of partitions that moved to other brokers."""
        draft = self._draft()
        draft.on_departed((broker_id,), names)
        return draft.forgotten(())

    def replicas_offline(
        self, broker_id: int, names: Iterable[TopicPartition], broker_epoch: int = _NOT_SENT
    ) -> Decision:
        """Handle the loss of these replicas, which were in a failed log directory of a live broker.

        Another ISR member becomes the leader. If there is none, the partition has no leader until
        the replicas are available again. The broker itself is notified as well, because if only a
        log was damaged, it creates an empty log once another replica leads. A report from an
        earlier registration is ignored, because the disk may work again; if it does not, the broker
        will report it once more.
        """
        draft = self._draft()
        broker = self.image.brokers.get(broker_id)
        # Ignore the report if it is from an earlier registration.
        if broker is None or broker_epoch not in (_NOT_SENT, broker.epoch):
            return draft.nothing()
        broker_changes.replicas_offline(draft, broker_id, names)
        return draft.decision() if draft.has_changed else draft.nothing()

    def replicas_online(
        self, broker_id: int, names: Iterable[TopicPartition], broker_epoch: int
    ) -> Decision:
        """Handle the report of a live broker that it hosts lost replicas again.

        A damaged log is replaced by an empty one, which is created once another replica leads. The
        replicas may join the ISR, and a leader is elected for each partition that was waiting for
        them.
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
        """Handle a controlled shutdown: move leadership to other brokers if possible, and remove
        this broker from the ISRs.

        Returns the partitions that the broker still leads although they have other replicas. The
        broker is not elected again until it registers again. Raises BrokerIdNotRegistered or
        StaleBrokerEpoch.
        """
        broker = self.image.brokers.get(broker_id)
        if broker is None:
            raise BrokerIdNotRegistered(f"broker {broker_id} is not registered")
        if broker_epoch not in (_NOT_SENT, broker.epoch):
            raise StaleBrokerEpoch(
                f"broker {broker_id} is registered in epoch {broker.epoch}, not {broker_epoch}"
            )
        # The broker epoch is stored as well, so that the broker can be elected again after it has
        # restarted.
        self._leaving[broker_id] = broker.epoch
        draft = self._draft()
        remaining = broker_changes.leave(draft, broker_id)
        return _decision_of(draft), remaining

    # --- partitions ------------------------------------------------------------------------------

    def isr_proposed(
        self, broker_id: int, broker_epoch: int, proposals: Iterable[IsrProposal]
    ) -> tuple[Decision, dict[TopicPartition, IsrAnswer]]:
        """Decide on the ISRs that a leader has proposed.

        The responses must not be sent before the decision has been committed.
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
        """Adopt the state nodes that leaders have written (RE-9), and return whether any has
        changed.

        They have already been committed, so they are added to the image immediately. No broker is
        notified.
        """
        draft = self._draft()
        has_changed = isr.take_over(draft, written)
        if has_changed:
            # Do not call `apply`, because nothing has to be committed and the requests of this
            # decision are not sent.
            self.image = draft.decision().image
        return has_changed

    def isrs_announced(self, names: Iterable[TopicPartition]) -> Decision:
        """Notify all brokers of ISRs that leaders changed and `states_read` adopted."""
        draft = self._draft()
        isr.notify(draft, names)
        return _decision_of(draft)

    def elect_leaders(
        self, names: Iterable[TopicPartition] | None, *, unclean: bool
    ) -> tuple[Decision, dict[TopicPartition, KafkaError | None]]:
        """Elect preferred leaders (KIP-460).

        If `unclean` is set, elect any live replica of a partition that has no leader. If no
        partitions are named (None), all partitions are handled, and those that need no election are
        omitted from the response.
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
                # As in Kafka, these are omitted from the response if the request is for all
                # partitions.
                if not isinstance(error, ElectionNotNeeded)
            }
        return _decision_of(draft), outcomes

    def rebalance_leaders(self, max_imbalance_percent: int) -> Decision:
        """Elect preferred leaders for brokers that lead too few of their preferred partitions."""
        draft = self._draft()
        draft.because = "its preferred leader led too few of its partitions (automatic rebalance)"
        preferred_leader.rebalance(draft, max_imbalance_percent)
        return _decision_of(draft)

    def reassign(
        self, requested: Mapping[TopicPartition, Sequence[int] | None]
    ) -> tuple[Decision, dict[TopicPartition, KafkaError | None]]:
        """Move partitions to these replicas (KIP-455). If None is given, cancel the move."""
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
                # Otherwise, the traceback would keep the whole request in memory.
                outcomes[name] = error.with_traceback(None)
            else:
                outcomes[name] = None
        for topic in dict.fromkeys(name.topic for name, error in outcomes.items() if not error):
            # The topic's node must be written first. If another controller takes over between two
            # commits, it then finds the replicas and can complete the reassignment (KIP-455).
            draft.write_topic(topic, first=True)
        return _decision_of(draft), outcomes

    @property
    def ends_wanted(self) -> frozenset[TopicPartition]:
        """The partitions that need the log ends of all replicas to elect a leader."""
        if self._wanted is None or self._wanted[0] is not self.image:
            self._wanted = (self.image, ends_wanted(self._draft()))
        return self._wanted[1]

    def ends_known(self, ends: Ends) -> Decision:
        """Record the log ends of some replicas.

        Once all log ends of a partition are known, the replica with the largest log end becomes the
        leader.
        """
        draft = self._draft()
        draft.because = "the log ends of all replicas are known, and the longest log leads"
        for name in sorted(self.ends_wanted):
            # Sort by name, because the order of a set differs from run to run.
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
        """The reasons why brokers are excluded, in the order of their ids."""
        return tuple(reason for _, (_, reason) in sorted(self._left_out.items()))

    @property
    def offline_partitions(self) -> frozenset[TopicPartition]:
        """The partitions that have no live leader. They are computed on each call."""
        return offline(self._draft())

    @property
    def counts(self) -> Counts:
        """The counts over all partitions. They are computed once for each image."""
        if self._counted is None or self._counted[0] is not self.image:
            self._counted = (self.image, count(self._draft()))
        return self._counted[1]

    def _lead(self, topics: Sequence[TopicImage], because: str, *, notifies_all: bool) -> Decision:
        """Elect leaders for partitions without a live leader, and send these topics to the brokers.

        LeaderAndIsr is sent for the partitions with an election or, if `notifies_all` is set, for
        all partitions.
        """
        draft = self._draft()
        draft.because = because
        for topic in topics:
            # No leaders are elected for a topic that is being deleted.
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
    """Remove the leaders, and tell the live brokers to delete the replicas.

    The topics stay in the image.
    """
    for topic in topics:
        draft.take_up(topic)
        for number, partition in topic.partitions.items():
            # If a partition never had a leader, it has no state node to write. If it currently has
            # no leader, its state is already final.
            if partition.partition_epoch == NEVER_LED or partition.leader == NO_LEADER:
                continue
            for replica in partition.replicas:
                if replica in partition.isr:
                    partition = without(partition, replica, draft.epoch)
                    draft.write(TopicPartition(topic.name, number), partition)
    _stop_replicas(draft, topics, draft.brokers)
    return draft.removal([topic.name for topic in topics])


def _stop_replicas(draft: Draft, topics: Iterable[TopicImage], broker_ids: Iterable[int]) -> None:
    """Tell these brokers to delete their replicas of the topics."""
    topics = list(topics)
    for broker_id in broker_ids:
        for topic in topics:
            for number, partition in topic.partitions.items():
                if broker_id in partition.replicas:
                    draft.stop(broker_id, TopicPartition(topic.name, number), delete=True)
