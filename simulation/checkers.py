"""Checks the rules that hold after every step; each rule is judged wherever it could have been
broken.

A rule counts how often it had something to judge, because a rule that never did proves nothing. A
broken rule ends the run with a Violation that names it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from barnabas.cluster import layout
from barnabas.cluster.controller_requests import IsrProposal
from barnabas.cluster.image import NO_LEADER
from barnabas.cluster.layout import TRANSACTION_TOPIC, StateNode
from barnabas.cluster.nodes import DELETE, Effect, Tree
from barnabas.types import TopicPartition
from simulation.disk import Entry, SimLog
from simulation.group_checks import GroupChecks
from simulation.history import History
from simulation.rules import RULES, Violation
from simulation.topic_checks import TopicChecks
from simulation.transaction_checks import TransactionChecks

if TYPE_CHECKING:
    from simulation.cluster import Cluster
    from simulation.sim_broker import SimBroker
    from simulation.sim_replica import SimReplica


class Checks:
    """All rules of one run, and how often each has judged something."""

    __slots__ = (
        "_broker_epochs",
        "_cluster",
        "_registered_doubtful",
        "_watermarks",
        "controller_epoch",
        "groups",
        "histories",
        "is_unclean_requested",
        "judged",
        "promises",
        "topics",
        "transactions",
    )

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.histories: dict[tuple[bytes, TopicPartition], History] = {}
        self.topics = TopicChecks(cluster)
        self.transactions = TransactionChecks(cluster)
        self.groups = GroupChecks(cluster)
        self.judged = dict.fromkeys(RULES, 0)
        self.promises = 0
        self.is_unclean_requested = False
        self.controller_epoch = 0
        self._broker_epochs: dict[int, int] = {}
        self._registered_doubtful: dict[int, bool] = {}  # what a controller has read about them
        self._watermarks: dict[tuple[int, TopicPartition], int] = {}

    @property
    def _is_unclean_allowed(self) -> bool:
        return self._cluster.options.is_unclean_allowed or self.is_unclean_requested

    def history(self, name: TopicPartition) -> History:
        """Return the history of the topic that currently has the name."""
        return self._history(name, self._cluster.topics.get(name.topic, b""))

    def of(self, replica: SimReplica) -> History:
        """Return the history of the replica's topic; another topic may by now have its name."""
        return self._history(replica.topic_partition, replica.log.topic_id)

    def _history(self, name: TopicPartition, topic_id: bytes) -> History:
        history = self.histories.get((topic_id, name))
        if history is None:
            is_second = any(known == name for _, known in self.histories)
            history = self.histories[topic_id, name] = History(name, topic_id, is_second=is_second)
        return history

    def judge(self, rule: str, holds: bool, text: str, *values: object) -> None:
        """Count a judgement, and end the run if the rule does not hold."""
        self.judged[rule] += 1
        if not holds:
            raise Violation(rule, text.format(*values))

    # --- brokers ---------------------------------------------------------------------------------

    def registered(self, broker: SimBroker) -> None:
        before = self._broker_epochs.get(broker.broker_id, -1)
        self.judge(
            "epochs",
            broker.epoch >= before,
            "broker {} has epoch {} after {}",
            broker.broker_id,
            broker.epoch,
            before,
        )
        self._broker_epochs[broker.broker_id] = broker.epoch
        self._registered_doubtful[broker.broker_id] = broker.disk.may_have_lost

    def opened(self, replica: SimReplica) -> None:
        """Judge what a replica finds on its disk when its life begins."""
        watermark = replica.partition.high_watermark
        self._in_log(replica, watermark)
        self._watermarks[replica.broker.broker_id, replica.topic_partition] = watermark
        history = self.of(replica)
        if not history.resets and not history.is_forked:
            end = min(watermark, len(history.committed))
            missing = history.first_missing(replica.log, 0, end)
            self.judge(
                "log matching",
                missing is None,
                "{} on broker {} starts without {}",
                replica.topic_partition,
                replica.broker.broker_id,
                missing,
            )

    # --- logs ------------------------------------------------------------------------------------

    def appended(self, replica: SimReplica, count: int) -> None:
        log, history = replica.log, self.of(replica)
        epoch = log.entries[-count - 1].epoch if len(log.entries) > count else -1
        for place in range(len(log.entries) - count, len(log.entries)):
            entry = log.entries[place]
            self.judge(
                "dense",
                entry.offset == log.base + place and entry.epoch >= epoch,
                "{} on broker {} has {} at offset {} after epoch {}",
                replica.topic_partition,
                replica.broker.broker_id,
                entry,
                log.base + place,
                epoch,
            )
            epoch = entry.epoch
            if history.is_second:
                self.topics.is_in(history, entry)

    def truncated(self, replica: SimReplica, offset: int, gone: Sequence[Entry]) -> None:
        history = self.of(replica)
        committed = history.committed
        for entry in () if history.is_forked else gone:
            self.judge(
                "truncation",
                entry.offset >= len(committed) or committed[entry.offset] != entry,
                "{} on broker {} is cut to {}, and {} was committed",
                replica.topic_partition,
                replica.broker.broker_id,
                offset,
                entry,
            )
        self._in_log(replica, replica.partition.high_watermark)
        self._watermarks[replica.broker.broker_id, replica.topic_partition] = (
            replica.partition.high_watermark
        )
        if gone:
            self._cluster.world.tell(
                "broker {} cuts {} to {}: {} records",
                replica.broker.broker_id,
                replica.topic_partition,
                offset,
                len(gone),
            )

    def deleted(self, replica: SimReplica) -> None:
        """Record that a leader has deleted the records below its log's start."""
        history = self.of(replica)
        history.deleted_below = max(history.deleted_below, replica.log.log_start_offset)

    def started_at(self, replica: SimReplica, offset: int) -> None:
        self._watermarks[replica.broker.broker_id, replica.topic_partition] = (
            replica.partition.high_watermark
        )
        self._cluster.world.tell(
            "broker {} restarts {} at {}", replica.broker.broker_id, replica.topic_partition, offset
        )

    def _in_log(self, replica: SimReplica, watermark: int) -> None:
        self.judge(
            "hw in log",
            watermark <= replica.log.log_end_offset,
            "{} on broker {}: HW {}, log end {}",
            replica.topic_partition,
            replica.broker.broker_id,
            watermark,
            replica.log.log_end_offset,
        )

    # --- leaders ---------------------------------------------------------------------------------

    def led(self, replica: SimReplica) -> None:
        history, broker_id = self.of(replica), replica.broker.broker_id
        epoch = replica.partition.leader_epoch
        leader = history.leaders.get(epoch, broker_id)
        self.judge(
            "one leader",
            leader == broker_id,
            "{} is led in epoch {} by {} and by {}",
            replica.topic_partition,
            epoch,
            leader,
            broker_id,
        )
        if epoch in history.leaders and not replica.log.has_lost:
            return
        newest = history.newest_epoch
        history.leaders[epoch] = broker_id
        history.starts[epoch] = replica.log.log_end_offset
        self._cluster.world.tell(
            "broker {} leads {} in epoch {} from {}, ISR {}",
            broker_id,
            replica.topic_partition,
            epoch,
            replica.log.log_end_offset,
            replica.partition.isr,
        )
        if epoch < newest:
            return  # the request came late; others already lead
        if not history.is_forked:
            self._complete(replica, history, epoch)
            self._regained(replica, history)

    def _complete(self, replica: SimReplica, history: History, epoch: int) -> None:
        """Judge that the leader of the newest epoch has every record that may not be lost."""
        end = replica.log.log_end_offset
        missing = history.first_missing(replica.log, 0, len(history.committed))
        self.judge(
            "leader completeness",
            missing is None or self._is_legal(replica, missing),
            "{} is led by broker {} in epoch {}, which lacks offset {} of {} committed",
            replica.topic_partition,
            replica.broker.broker_id,
            epoch,
            missing,
            len(history.committed),
        )
        if missing is None and end >= len(history.committed):
            return
        count = history.lose(end if missing is None else min(missing, end), epoch)
        self._cluster.world.tell(
            "{}: {} records are lost, as was to be expected", replica.topic_partition, count
        )

    def _regained(self, replica: SimReplica, history: History) -> None:
        """Commit lost records again if a leader has had them below its HW all the time."""
        known, watermark = len(history.committed), replica.partition.high_watermark
        if watermark > known:
            self._committed(replica, history, known, watermark)

    def _is_legal(self, replica: SimReplica, offset: int) -> bool:
        """Return whether losing this record breaks no promise."""
        history, options = self.of(replica), self._cluster.options
        entry = history.committed[offset]
        if self._is_unclean_allowed and replica.log.has_lost:
            return True
        holders = [
            broker_id
            for broker_id, disk in self._cluster.disks.items()
            # A replica that has been moved away may still have the record, but does not count.
            if broker_id in self.topics.replicas_of(replica.topic_partition)
            and _holds(disk.logs.get(replica.topic_partition), history.topic_id, entry)
        ]
        if not holders:
            return True
        # With a minimum of one in sync, the only replica may have lost it with its disk.
        isr = () if history.previous is None else history.previous.isr
        return (
            options.min_insync_replicas == 1
            and replica.log.has_lost
            and not any(holder in isr for holder in holders)
        )

    def advanced(self, replica: SimReplica) -> None:
        """Judge a replica whose HW has risen."""
        partition, log = replica.partition, replica.log
        history, broker_id = self.of(replica), replica.broker.broker_id
        watermark = partition.high_watermark
        before = self._watermarks.get((broker_id, replica.topic_partition), 0)
        self._in_log(replica, watermark)
        self.judge(
            "hw monotonic",
            watermark >= before,
            "{} on broker {}: HW {} after {}",
            replica.topic_partition,
            broker_id,
            watermark,
            before,
        )
        self._watermarks[broker_id, replica.topic_partition] = watermark
        if partition.is_leader:
            self._maximal(replica, history)
        if history.is_forked or partition.leader_epoch < history.reset_epoch:
            return
        known = len(history.committed)
        if partition.is_leader and watermark > known:
            self._committed(replica, history, known, watermark)
        end = min(watermark, len(history.committed))
        missing = history.first_missing(log, before, end)
        self.judge(
            "log matching",
            missing is None and watermark <= len(history.committed),
            "{} on broker {} has HW {} of {} committed, and another record at {}",
            replica.topic_partition,
            broker_id,
            watermark,
            known,
            missing,
        )

    def _committed(self, replica: SimReplica, history: History, start: int, end: int) -> None:
        """Judge records that a leader has made visible: every replica that can be, or was, elected
        must have them."""
        log, broker_id = replica.log, replica.broker.broker_id
        entries = log.entries[max(start - log.base, 0) : end - log.base]
        wrong = history.commit(
            history.deleted_again(log.base) + entries,
            has_epochs_again=self.transactions.is_suspended,
        )
        self.judge("idempotence", wrong is None, "{}: {}", replica.topic_partition, wrong)
        if replica.topic_partition.topic == TRANSACTION_TOPIC:
            self.transactions.committed(history.committed[start:end])
        self.judge(
            "dense",
            len(history.committed) == end,
            "{}: broker {} commits up to {} without what was before its {}",
            replica.topic_partition,
            broker_id,
            end,
            log.base,
        )
        members = () if history.stored is None else history.stored.isr
        newest = history.leaders[history.newest_epoch]
        for member in dict.fromkeys((*members, newest)):
            self._has(history, member, start, end)

    def _has(self, history: History, member: int, start: int, end: int) -> None:
        log = self._cluster.disks[member].logs.get(history.name)
        if log is not None and log.topic_id != history.topic_id:
            log = None
        if log is not None and log.has_lost:
            return  # its power failed, and the controller does not know yet
        if self.topics.is_being_deleted(history.name.topic):
            return  # replicas that have deleted their logs stay in the ISR until the last one has
        missing = start if log is None else history.first_missing(log, start, end)
        self.judge(
            "strong isr",
            missing is None,
            "{}: broker {} may be elected (ISR {}) and lacks committed offset {}",
            history.name,
            member,
            history.stored and history.stored.isr,
            missing,
        )

    def _maximal(self, replica: SimReplica, history: History) -> None:
        stored, partition = history.stored, replica.partition
        if stored is None or not partition.is_leader:
            return
        if stored.leader_epoch == partition.leader_epoch:
            maximal = partition.maximal_isr
            self.judge(
                "maximal isr",
                all(member in maximal for member in stored.isr),
                "{}: broker {} waits for {}, stored is {}",
                replica.topic_partition,
                replica.broker.broker_id,
                maximal,
                stored.isr,
            )

    def proposed(self, replica: SimReplica, proposal: IsrProposal) -> None:
        partition, history = replica.partition, self.of(replica)
        isr = tuple(member.broker_id for member in proposal.isr)
        self._cluster.world.tell(
            "broker {} proposes ISR {} for {} instead of {}, HW {}",
            replica.broker.broker_id,
            isr,
            replica.topic_partition,
            partition.isr,
            partition.high_watermark,
        )
        self._maximal(replica, history)
        epochs = {member.broker_id: member.broker_epoch for member in proposal.isr}
        least = max(partition.high_watermark, history.starts.get(partition.leader_epoch, 0))
        for member in isr:
            log = self._cluster.disks[member].logs.get(replica.topic_partition)
            if member in partition.isr or log is None or log.has_lost:
                continue
            if epochs[member] != self._broker_epochs[member]:
                continue  # it has re-registered since, so the controller will refuse it
            self.judge(
                "expansion",
                log.log_end_offset >= least,
                "{}: broker {} is to join at {}, below {}",
                replica.topic_partition,
                member,
                log.log_end_offset,
                least,
            )

    # --- the metadata store ----------------------------------------------------------------------

    def committed(self, session_id: int, effects: Sequence[Effect], tree: Tree) -> None:
        for effect in effects:
            path = effect.path
            if path == layout.CONTROLLER_EPOCH:
                epoch = layout.decode_epoch(effect.data)
                self.judge(
                    "epochs",
                    epoch > self.controller_epoch or not epoch,
                    "controller epoch {} after {}",
                    epoch,
                    self.controller_epoch,
                )
                self.controller_epoch = epoch
            elif path.endswith("/state") and effect.kind != DELETE:
                words = path.split("/")
                name = TopicPartition(words[3], int(words[5]))
                state = layout.decode_state(*name, effect.data)
                self._stored(self.history(name), state, session_id)
            else:
                self.topics.committed(effect, tree)

    def _stored(self, history: History, state: StateNode, session_id: int) -> None:
        before, name = history.stored, history.name
        history.stored = state
        is_leaders = before is not None and self._is_by_leader(state, before, session_id)
        self.judge(
            "fencing",
            is_leaders or state.controller_epoch == self.controller_epoch,
            "{} is written by the controller of epoch {}, this is epoch {}",
            name,
            state.controller_epoch,
            self.controller_epoch,
        )
        if before is None:
            return
        self.judge(
            "epochs",
            state.leader_epoch >= before.leader_epoch,
            "{}: {} after {}",
            name,
            state,
            before,
        )
        self._cluster.world.tell(
            "stored: {} leader {} epoch {} ISR {}",
            name,
            state.leader,
            state.leader_epoch,
            state.isr,
        )
        if state.leader_epoch == before.leader_epoch:
            self.judge(
                "one leader", state.leader == before.leader, "{}: {} after {}", name, state, before
            )
        elif state.leader != NO_LEADER:
            history.previous = before
            history.is_unclean = state.leader not in before.isr
            if history.is_unclean and self._is_unclean_allowed:
                self._cluster.world.tell("{}: from now on nothing is promised any more", name)
                history.is_forked = True
            self.judge(
                "election",
                not history.is_unclean or self._may_leave_isr(before),
                "{}: broker {} is elected out of {}",
                name,
                state.leader,
                before.isr,
            )
        self._joined(history, state, before, is_leaders=is_leaders)
        broker = self._cluster.brokers.get(state.leader)
        leader = None if broker is None else broker.hosted.get(name)
        if leader is not None:
            self._maximal(leader, history)

    def _joined(
        self, history: History, state: StateNode, before: StateNode, *, is_leaders: bool
    ) -> None:
        """Judge that the replicas joining the ISR have every committed record."""
        name = history.name
        for member in state.isr:
            is_joining = state.leader_epoch == before.leader_epoch and member not in before.isr
            log = self._cluster.disks[member].logs.get(name)
            if is_joining and is_leaders and (log is None or log.has_lost):
                # Only a controller would have refused a broker that has re-registered.
                self._cluster.world.tell(
                    "{}: its leader trusts a replica that has lost records", name
                )
                history.is_forked = True
            if is_joining and not history.is_forked:
                self._has(history, member, 0, len(history.committed))

    def _is_by_leader(self, state: StateNode, before: StateNode, session_id: int) -> bool:
        """Return whether a leader below version 2.7 has written a different ISR."""
        leader = self._cluster.brokers.get(state.leader)
        return (
            state.leader in self._cluster.options.isr_writers
            and state[:2] == before[:2]
            and leader is not None
            and leader.session.session_id == session_id
        )

    def _may_leave_isr(self, before: StateNode) -> bool:
        """Return whether unclean elections are allowed, or the only ISR member may have lost
        records."""
        if self._is_unclean_allowed:
            return True
        if len(before.isr) != 1:
            return False
        last = before.isr[0]
        registered = self._registered_doubtful.get(last, False)
        return registered or self._cluster.disks[last].may_have_lost

    # --- clients ---------------------------------------------------------------------------------

    def promised(self, replica: SimReplica, offset: int) -> None:
        """Judge an answer from a leader to a producer that asked for acks=all."""
        self.promises += 1
        history = self.of(replica)
        if history.is_forked or replica.partition.leader_epoch < history.reset_epoch:
            return
        log, committed = replica.log, history.committed
        if offset < log.base:
            return  # committed, but deleted since
        entry = None if offset >= log.log_end_offset else log.entries[offset - log.base]
        self.judge(
            "promise",
            offset < len(committed) and committed[offset] == entry,
            "{}: broker {} acknowledges {}, committed are {}",
            replica.topic_partition,
            replica.broker.broker_id,
            entry or offset,
            len(committed),
        )

    def read(self, name: TopicPartition, topic_id: bytes, entries: Sequence[Entry]) -> None:
        """Judge what a consumer has read from the topic with this id."""
        history = self._history(name, topic_id)
        committed = history.committed
        for entry in () if history.is_forked else entries:
            self.judge(
                "consumer",
                entry in history.lost
                or entry.epoch < history.reset_epoch  # an earlier leader may still count them
                or (entry.offset < len(committed) and committed[entry.offset] == entry),
                "{}: {} was read, and committed are {}: {}",
                name,
                entry,
                len(committed),
                committed[entry.offset : entry.offset + 1],
            )
        if history.is_second:
            for entry in entries:
                self.topics.is_in(history, entry)

    def latest(self, name: TopicPartition, before: int, offset: int) -> None:
        """Judge the latest offset that a client received against the previous one."""
        self.judge(
            "hw monotonic",
            offset >= before or self.history(name).is_forked,
            "{}: latest is {} after {}",
            name,
            offset,
            before,
        )


def _holds(log: SimLog | None, topic_id: bytes, entry: Entry) -> bool:
    if log is None or log.topic_id != topic_id or not log.base <= entry.offset < log.log_end_offset:
        return False
    return log.entries[entry.offset - log.base] == entry
