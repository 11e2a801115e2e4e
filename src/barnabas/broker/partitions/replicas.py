"""The set of partitions that this broker hosts, and what the controller tells it about them.

LeaderAndIsr, UpdateMetadata and StopReplica arrive as values; here they become directories, logs
and roles. Between the controller's word and the disk there is no second way, for one node either.

A log directory that fails takes its partitions offline and nothing else: they answer
KAFKA_STORAGE_ERROR from then on, and `on_directory_failed` is told which they are.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from barnabas.broker.cluster_view import ClusterView
from barnabas.broker.partitions.deferred_states import Postponed
from barnabas.broker.partitions.log_changes import LogChanges
from barnabas.broker.partitions.replica import Replica
from barnabas.broker.partitions.staged_writes import StagedWrites
from barnabas.broker.runtime.descriptors import Shortage
from barnabas.broker.runtime.disk_threads import LOOP_THREADS, DiskThreads
from barnabas.broker.runtime.steps import Steps, at_once
from barnabas.broker.state_changes import RoleChange, role_lines
from barnabas.clock import Clock
from barnabas.cluster.controller_requests import (
    IsrAnswer,
    IsrProposal,
    LeaderAndIsr,
    PartitionState,
    StopReplica,
)
from barnabas.cluster.image import NO_LEADER, PartitionImage, TopicImage
from barnabas.config import BrokerConfig
from barnabas.errors import (
    NONE,
    InconsistentTopicId,
    KafkaError,
    KafkaStorageError,
    NotLeaderOrFollower,
    UnknownTopicOrPartition,
    is_out_of_descriptors,
)
from barnabas.metrics import Counter
from barnabas.replication.partition import NO_EPOCH, Partition
from barnabas.storage.directory import DirectoryError
from barnabas.storage.failures import LogAbandoned
from barnabas.storage.log import Log
from barnabas.storage.store import LogStore
from barnabas.types import TopicPartition

_log = logging.getLogger(__name__)

DirectoryFailed = Callable[[Path, Sequence[TopicPartition]], None]
Codes = dict[TopicPartition, int]

_PARTITIONS_PER_TURN = 16  # each may cost file operations; others are served between


class _Unhosted(Exception):
    """There is no descriptor to make or to change a replica's files with."""


def _nobody(*_: object) -> None:
    """Nobody asked to be told."""


def _follows(replica: Replica) -> bool:
    return not replica.partition.is_leader and replica.partition.leader != NO_LEADER


class Replicas:
    """Every replica on this broker, by topic and partition."""

    __slots__ = (
        "_broker_epoch",
        "_broker_id",
        "_changes",
        "_clock",
        "_config",
        "_dirty",
        "_has_unread",
        "_live",
        "_offline",
        "_overrides",
        "_replicas",
        "_replicated",
        "_shortage",
        "_store",
        "_view",
        "failed_isr_updates",
        "isr_expands",
        "isr_shrinks",
        "lanes",
        "on_all_placed",
        "on_directory_failed",
        "on_following",
        "on_leading",
        "on_left",
        "on_propose",
        "on_stopped_following",
        "postponed",
        "preparing",
        "start_flush",
        "unplaced",
        "write_soon",
        "write_staged",
    )

    def __init__(
        self,
        view: ClusterView,
        store: LogStore,
        config: BrokerConfig,
        clock: Clock,
        lanes: DiskThreads = LOOP_THREADS,
        keep_objects: Callable[[], None] = _nobody,
    ) -> None:
        self.lanes = lanes
        self._view = view
        self._broker_id = view.broker_id
        self._store = store
        self._config = config
        self._clock = clock
        self._replicas: dict[tuple[str, int], Replica] = {}  # by TopicPartition
        self._overrides: dict[str, Mapping[str, str]] = {}  # of the topics hosted here
        self._offline: set[TopicPartition] = set()
        self._changes = LogChanges(self, store, keep_objects)
        # Nobody knows what lies in a directory that has failed before it was read.
        self._has_unread = bool(store.failed_directories)
        writes = StagedWrites(self, clock)
        self._dirty = writes.dirty
        self.write_staged = writes.write
        self.write_soon = writes.write_soon
        self.start_flush = writes.start_flush
        self._replicated: dict[Replica, None] = {}  # what is led here and followed elsewhere
        self.preparing: set[str] = set()
        """Topics whose batches are more than looked at: see `storage.admission.prepare`."""
        self.on_directory_failed: DirectoryFailed | None = None
        self.on_leading: Callable[[Replica], None] = _nobody
        """Told of each replica that leads its partition from now on, in a new epoch."""
        self.on_left: Callable[[Replica], None] = _nobody
        """Told of each replica that leads or hosts its partition no longer."""
        self.on_following: Callable[[Replica, int], None] = _nobody
        """Told of each replica that follows this broker from now on, or in a new epoch."""
        self.on_stopped_following: Callable[[Replica], None] = _nobody
        """Told of each replica that leads, has no leader to follow or is hosted no longer."""
        self.on_propose: Callable[[IsrProposal], None] = _nobody
        """Told of each ISR that a leader here wants; `isr_answered` brings what became of it."""
        self.isr_shrinks = Counter()
        self.isr_expands = Counter()
        """What the controller has agreed to, of what leaders here proposed."""
        self.failed_isr_updates = Counter()
        self.on_all_placed: Callable[[], None] = _nobody
        """Told when `unplaced` has become empty."""
        self.unplaced: set[TopicPartition] = set()
        """Logs that were found at the start, and of which nobody has said since who leads them."""
        self._live: dict[int, int] = {}
        self._broker_epoch = -1
        self._shortage = Shortage(clock)
        self.postponed = Postponed(self._apply_again)
        """What waits for file descriptors. Whoever stops a partition has it forgotten here."""

    def __len__(self) -> int:
        return len(self._replicas)

    def __iter__(self) -> Iterator[Replica]:
        return iter(self._replicas.values())

    @property
    def store(self) -> LogStore:
        return self._store

    def leader_of(self, topic_partition: tuple[str, int], leader_epoch: int = NO_EPOCH) -> Replica:
        """The replica, if this broker leads the partition; else the row that a client must get.

        `leader_epoch`: the one that the client has in mind; another one is refused first, as Kafka
        does it.
        """
        replica = self.hosted(topic_partition, leader_epoch)
        if not replica.partition.is_leader:
            raise NotLeaderOrFollower(f"this broker does not lead {replica.topic_partition}")
        return replica

    @property
    def has_staged(self) -> bool:
        return bool(self._dirty)

    def hosted(self, topic_partition: tuple[str, int], leader_epoch: int = NO_EPOCH) -> Replica:
        """As `leader_of`, of a replica that leads or follows."""
        # A plain tuple will do: it equals the TopicPartition, and is made in a tenth of the time.
        replica = self._replicas.get(topic_partition)
        if replica is None:
            raise self._missing(topic_partition)
        if leader_epoch != NO_EPOCH:
            replica.partition.check_leader_epoch(leader_epoch)
        return replica

    def get(self, topic_partition: TopicPartition) -> Replica | None:
        """The replica, if it is hosted."""
        return self._replicas.get(topic_partition)

    def hosts(self, replica: Replica) -> bool:
        """Whether it is still this one. Who has awaited something may hold one that is not."""
        return self._replicas.get(replica.topic_partition) is replica

    def _missing(self, topic_partition: tuple[str, int]) -> KafkaError:
        name = TopicPartition(*topic_partition)
        if name in self._offline:
            return KafkaStorageError(f"the log directory of {name} is offline")
        kind = NotLeaderOrFollower if self._view.is_known(name) else UnknownTopicOrPartition
        return kind(f"{name} is not hosted by this broker")

    # --- what the controller says ----------------------------------------------------------------

    def apply_leader_and_isr(self, request: LeaderAndIsr) -> Codes:
        """`leader_and_isr`, all at once."""
        return at_once(self.leader_and_isr(request))

    def leader_and_isr(self, request: LeaderAndIsr) -> Steps[Codes]:
        """Host, lead or follow as the controller says; an error code for each partition.

        An older leader epoch changes nothing, nor does an ISR that is older than what is known.
        """
        codes: Codes = {}
        role_changes: list[RoleChange] = []
        yield from self._changes.set_strays_aside(request, self._broker_epoch)
        yield from self._make_logs(request)
        for done, state in enumerate(request.partitions, 1):
            codes[state.topic_partition] = self._apply(state, role_changes)
            if done % _PARTITIONS_PER_TURN == 0:
                yield None
        for line in role_lines(self._broker_id, role_changes):
            _log.info("%s", line)
        return codes

    def _make_logs(self, request: LeaderAndIsr) -> Steps[None]:
        """Those that are not there yet, with one wait for the disk, before anybody writes to them.

        They are hosted then, without a leader; what cannot be is looked at again with its role.
        """
        hosted, logs = self._replicas, self._store.logs
        places = ((each, each.topic_partition) for each in request.partitions)
        missing = [each for each, name in places if name not in hosted and name not in logs]
        yield from self._changes.lay_out(missing)
        for done, state in enumerate(missing, 1):
            with suppress(_Unhosted):
                self._try_to_host(state)
            if done % _PARTITIONS_PER_TURN == 0:
                yield None
            self._changes.keep(done)
        if missing:
            yield from self._changes.note_made()

    def _apply_again(self, state: PartitionState) -> None:
        """What had to be put off."""
        at_once(self.leader_and_isr(LeaderAndIsr(0, 0, (state,))))

    def _apply(self, state: PartitionState, role_changes: list[RoleChange]) -> int:
        """What is said of one partition; an error code."""
        name = state.topic_partition
        self.postponed.forget([name])
        replica = self._replicas.get(name)
        try:
            if replica is None:
                replica = self._try_to_host(state)
        except _Unhosted:
            self.postponed.put_off(state)
            return NONE
        if replica is None:
            return KafkaStorageError.code
        if replica.partition.topic_id != state.topic_id:
            return InconsistentTopicId.code
        if state.partition.leader != NO_LEADER:
            self.placed(name)
        partition, told = replica.partition, state.partition
        if (told.leader_epoch, told.partition_epoch) <= (
            partition.leader_epoch,
            partition.partition_epoch,
        ):
            return NONE
        before = partition.leader, partition.leader_epoch
        try:
            self._take_role(replica, told)
        except OSError as error:
            self.fail_directory(replica, error)
            if not is_out_of_descriptors(error):
                return KafkaStorageError.code
            self.postponed.put_off(state)
            return NONE
        if told.leader_epoch > before[1]:
            end = replica.log.log_end_offset
            role_changes.append(RoleChange(partition, told, end, *before))
        return NONE

    def _take_role(self, replica: Replica, told: PartitionImage) -> None:
        """Lead or follow in a new epoch, or with another ISR in the one that is."""
        log, partition = replica.log, replica.partition
        is_new = told.leader_epoch > partition.leader_epoch
        was_following = _follows(replica)
        if told.leader != self._broker_id:
            partition.become_follower(told)
            self._replicated.pop(replica, None)
            if is_new:
                self._left(replica)
                if told.leader != NO_LEADER:
                    self.on_following(replica, told.leader)
                elif was_following:
                    self.on_stopped_following(replica)
            return
        if was_following:
            self.on_stopped_following(replica)
        if is_new:
            # Before any append: an epoch starts at the log end that its leader found.
            log.assign_leader_epoch(told.leader_epoch)
        replica.adding = told.adding
        effects = partition.become_leader(told, log.log_end_offset, self._clock.monotonic_ms())
        if len(told.replicas) > 1:
            self._replicated[replica] = None
        else:
            self._replicated.pop(replica, None)
        if is_new:
            replica.leads()
        replica.carry_out(effects)
        replica.isr_changed()
        if is_new:
            self.on_leading(replica)

    def apply_stop_replica(self, request: StopReplica) -> Codes:
        """`stop_replica`, all at once."""
        return at_once(self.stop_replica(request))

    def stop_replica(self, request: StopReplica) -> Steps[Codes]:
        """Stop hosting the partitions, and delete their data if so told; an error code for each.

        What lies in a log directory that is out of reach stays as it is, which is said: it would
        come back with the disk. A deletion that is reported is durable, or the old log would be
        back after a power cut, when the name may be another topic's.
        """
        codes: Codes = {}
        deleted: dict[TopicPartition, Path] = {}
        for done, name in enumerate(request.partitions, 1):
            if self._is_out_of_reach(name, request.delete):
                codes[name] = KafkaStorageError.code
                continue
            codes[name] = NONE
            replica = self._replicas.pop(name, None)
            self._offline.discard(name)
            if replica is not None:
                self._gone(replica)
            if request.delete and name in self._store.logs:
                home = self._changes.delete(name)
                if home is None:
                    codes[name] = KafkaStorageError.code
                else:
                    deleted[name] = home
            if done % _PARTITIONS_PER_TURN == 0:
                yield None
        yield from self._changes.sync_names(dict.fromkeys(deleted.values()))
        for name, home in deleted.items():
            if home not in self._store.online_directories:
                self._offline.add(name)
                codes[name] = KafkaStorageError.code
        if request.delete:
            self.placed(*(name for name, code in codes.items() if code == NONE))
        return codes

    def stop_what_moved(self, topics: Iterable[TopicImage]) -> None:
        """Host no longer what has moved to other brokers, as these topics are by now.

        No StopReplica comes to one that could not be told at the time: it would go on to serve what
        it led, and acknowledge what nobody else gets. The log stays.
        """
        for topic in topics:
            for number, partition in topic.partitions.items():
                if self.postponed and self._broker_id not in partition.replicas:
                    self.postponed.forget([TopicPartition(topic.name, number)])
                replica = self._replicas.get((topic.name, number))
                if replica is None or self._broker_id in partition.replicas:
                    continue
                known = replica.partition
                if known.topic_id != topic.topic_id or known.leader_epoch < partition.leader_epoch:
                    _log.warning("%s has moved to other brokers", replica.topic_partition)
                    self.drop(replica)

    def _is_out_of_reach(self, name: TopicPartition, delete: bool) -> bool:
        """Whether a replica that is to be stopped lies, or may lie, where nobody can reach it."""
        may_be_unread = delete and self._has_unread
        return name not in self._store.logs and (name in self._offline or may_be_unread)

    def placed(self, *names: TopicPartition) -> None:
        """Somebody leads these, in the knowledge of how this broker began; or they are gone."""
        if self.unplaced:
            self.unplaced.difference_update(names)
            if not self.unplaced:
                self.on_all_placed()

    # --- the ISR ---------------------------------------------------------------------------------

    @property
    def live(self) -> dict[int, int]:
        """The live brokers and the epochs of their registrations; all partitions here share it.

        Assigned whole, by whoever learns it: no high watermark waits for a broker that has gone.
        """
        return self._live

    @live.setter
    def live(self, live: Mapping[int, int]) -> None:
        found = dict(live)
        has_gone = any(found.get(broker) != epoch for broker, epoch in self._live.items())
        self._live.clear()
        self._live.update(found)
        if has_gone:
            now_ms = self._clock.monotonic_ms()
            for replica in list(self._replicated):
                partition = replica.partition
                replica.carry_out(partition.appended(partition.log_end_offset, now_ms))

    @property
    def broker_epoch(self) -> int:
        """Of this broker's own registration; -1 before the first."""
        return self._broker_epoch

    @broker_epoch.setter
    def broker_epoch(self, broker_epoch: int) -> None:
        self._broker_epoch = broker_epoch
        for replica in self._replicas.values():
            replica.partition.broker_epoch = broker_epoch

    def check_isr(self, now_ms: int) -> None:
        """Have followers leave the ISR that have not kept up (RE-8), in what is led here."""
        for replica in list(self._replicated):
            replica.carry_out(replica.partition.expire(now_ms))

    def isr_answered(self, proposal: IsrProposal, answer: IsrAnswer) -> None:
        """The controller has agreed to a leader's proposal, or refused it."""
        replica = self._replicas.get(proposal.topic_partition)
        if replica is None or not replica.partition.is_leader:
            return  # it is led elsewhere by now
        partition = replica.partition
        before, was_changing = set(partition.isr), partition.is_changing_isr
        replica.carry_out(partition.isr_answered(proposal, answer, self._clock.monotonic_ms()))
        if answer.error_code:
            self.failed_isr_updates.increment(was_changing)
        else:
            self.isr_shrinks.increment(not before.issubset(partition.isr))
            self.isr_expands.increment(not before.issuperset(partition.isr))
        replica.isr_changed()

    def _left(self, replica: Replica, reason: KafkaError | None = None) -> None:
        self.on_left(replica)
        replica.stopped(reason)

    def drop(self, replica: Replica) -> None:
        """Host it no longer; its log stays where it is."""
        del self._replicas[replica.topic_partition]
        self._gone(replica)

    def out_of_reach(self, name: TopicPartition) -> None:
        """A partition's log cannot be had from its disk, which is about to fail."""
        self._offline.add(name)

    def _gone(self, replica: Replica, reason: KafkaError | None = None) -> None:
        """It is hosted no longer."""
        self._replicated.pop(replica, None)
        if _follows(replica):
            self.on_stopped_following(replica)
        self._left(replica, reason)

    def _try_to_host(self, state: PartitionState) -> Replica | None:
        name = state.topic_partition
        if name in self._offline:
            return None
        try:
            return self._host(state)
        except DirectoryError as error:
            self._offline.add(name)
            self.directory_failed(error.directory, error)
        except OSError as error:
            _log.error("%s cannot be hosted: %s", name, error)
            self._offline.add(name)
        return None

    @property
    def offline(self) -> frozenset[TopicPartition]:
        """Partitions of this broker whose log directory is out of reach."""
        return frozenset(self._offline)

    def _host(self, state: PartitionState) -> Replica:
        name = state.topic_partition
        self._overrides[name.topic] = state.topic_config
        config = self._config.log_config(state.topic_config)
        log = self._store.logs.get(name)
        try:
            if log is None:
                log = self._store.make(name, state.topic_id, config, is_new=state.is_new)
                self._changes.made[name] = self._broker_epoch
            elif log.topic_id is None:
                self._store.give_topic_id(name, state.topic_id)
        except OSError as error:
            if self.is_short_of_descriptors(error):
                raise _Unhosted from error
            raise
        else:
            log.config = config  # it was opened before anybody knew its topic's settings
        self._note_preparing(log)
        checkpointed = self._store.high_watermarks.get(name, 0)
        partition = Partition(
            name,
            self._broker_id,
            min_insync_replicas=config.min_insync_replicas,
            high_watermark=max(log.log_start_offset, min(checkpointed, log.log_end_offset)),
            lag_time_max_ms=self._config.int("replica.lag.time.max.ms"),
            topic_id=state.topic_id,
        )
        partition.live = self._live
        partition.broker_epoch = self._broker_epoch
        partition.log_start_offset = log.log_start_offset
        replica = Replica(log, partition, self._dirty, lambda proposal: self.on_propose(proposal))
        self._replicas[name] = replica
        return replica

    # --- configuration ---------------------------------------------------------------------------

    def update_topic_config(self, topic: str, overrides: Mapping[str, str]) -> None:
        """A topic's own settings have changed: its logs obey from now on."""
        self._overrides[topic] = overrides
        for replica in self._replicas.values():
            if replica.topic_partition.topic == topic:
                self._configure(replica)

    def update_broker_config(self, config: BrokerConfig) -> None:
        """The broker's settings have changed, which are the defaults of all topics."""
        self._config = config
        for replica in self._replicas.values():
            self._configure(replica)

    def _configure(self, replica: Replica) -> None:
        config = self._config.log_config(self._overrides.get(replica.topic_partition.topic, {}))
        replica.log.config = config
        replica.partition.min_insync_replicas = config.min_insync_replicas
        self._note_preparing(replica.log)

    def _note_preparing(self, log: Log) -> None:
        if log.limits.needs_preparation:
            self.preparing.add(log.topic_partition.topic)
        else:
            self.preparing.discard(log.topic_partition.topic)

    # --- directories that fail -------------------------------------------------------------------

    def fail_directory(self, replica: Replica, error: OSError) -> None:
        """The disk under a replica refused: all of its directory goes offline.

        One that is hosted no longer says nothing of any disk: its log was deleted, or has failed
        before, and the log of that name is another.
        """
        if self.is_short_of_descriptors(error):
            return  # nothing has failed
        if self.hosts(replica) and not isinstance(error, LogAbandoned):
            self.directory_failed(self._store.directory_of(replica.topic_partition), error)

    def is_short_of_descriptors(self, error: OSError) -> bool:
        """Whether that is what an error says, and not that a disk has failed; it is logged once."""
        if not is_out_of_descriptors(error):
            return False
        self._shortage.met(error)
        return True

    def directory_failed(self, directory: Path, error: OSError) -> None:
        """A log directory is out of reach, and every partition in it.

        Unless there was no file descriptor to reach it with: nothing has failed then.
        """
        if self.is_short_of_descriptors(error):
            return
        if directory not in self._store.online_directories:
            return  # that is known
        names = self._store.fail_directory(directory, error)
        _log.error(
            "log directory %s is offline, and %d partitions with it: %s; repair the disk and "
            "restart the broker",
            directory,
            len(names),
            error,
        )
        self._offline.update(names)
        gone = [self._replicas.pop(name) for name in names if name in self._replicas]
        for lost in gone:
            name = lost.topic_partition
            self._gone(lost, KafkaStorageError(f"the log directory of {name} is offline"))
        if self.on_directory_failed is not None:
            self.on_directory_failed(directory, names)

    def high_watermarks(self) -> dict[TopicPartition, int]:
        """Of all hosted partitions, for their checkpoint."""
        return {replica.topic_partition: replica.high_watermark for replica in self}
