"""Holds the replicas that this broker hosts, by partition.

Replicas are added by `role_changes`, which also changes their roles as the controller decides, and
are removed by `replica_removal`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from barnabas.broker.cluster_view import ClusterView
from barnabas.broker.configs.current_config import CurrentConfig
from barnabas.broker.partitions.staged_writes import StagedWrites
from barnabas.broker.partitions.traffic import Traffic
from barnabas.broker.runtime.descriptors import Shortage
from barnabas.broker.runtime.disk_threads import LOOP_THREADS, DiskThreads
from barnabas.clock import Clock
from barnabas.cluster.controller_requests import NO_EPOCH
from barnabas.config import BrokerConfig
from barnabas.config.topic_keys import LogConfig
from barnabas.errors import (
    KafkaError,
    KafkaStorageError,
    NotLeaderOrFollower,
    UnknownTopicOrPartition,
    is_out_of_descriptors,
)
from barnabas.events import EventLog
from barnabas.metrics import Family, Registry, Sample, gauge
from barnabas.storage.store import LogStore
from barnabas.types import TopicPartition

if TYPE_CHECKING:
    from barnabas.broker.partitions.replica import Replica
    from barnabas.storage.log import Log
    from barnabas.storage.log_directories import LogDirectories

_log = logging.getLogger(__name__)

_MINUTE_MS: Final = 60_000


class ReadFailures:
    """Logs failed reads, at most once a minute for each partition.

    Every client that reads a damaged batch tries again immediately.
    """

    __slots__ = ("_clock", "_last")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        # (time of the last line, lines omitted since)
        self._last: dict[TopicPartition, tuple[int, int]] = {}

    def on_failure(self, what: str, name: TopicPartition, error: Exception) -> None:
        """Log that reading the partition failed, unless this was logged recently."""
        now_ms = self._clock.monotonic_ms()
        before_ms, left_out = self._last.get(name, (now_ms - _MINUTE_MS, 0))
        if now_ms - before_ms < _MINUTE_MS:
            self._last[name] = before_ms, left_out + 1
            return
        more = f" ({left_out} more in the last minute)" if left_out else ""
        self._last = {
            each: last for each, last in self._last.items() if now_ms - last[0] < _MINUTE_MS
        }
        self._last[name] = now_ms, 0
        _log.error("%s of %s failed: %s%s", what, name, error, more)


class Replicas:
    """All replicas on this broker, by topic and partition."""

    __slots__ = (
        "_live",
        "_offline",
        "_overrides",
        "_replicas",
        "_replicated",
        "_shortage",
        "_store",
        "clock",
        "config",
        "converting",
        "dirty",
        "events",
        "read_failures",
        "start_flush",
        "threads",
        "traffic",
        "view",
        "write_soon",
        "write_staged",
    )

    def __init__(  # noqa: PLR0913  (the last two are options)
        self,
        view: ClusterView,
        store: LogStore,
        config: CurrentConfig,
        clock: Clock,
        metrics: Registry,
        threads: DiskThreads = LOOP_THREADS,
        events: EventLog | None = None,
    ) -> None:
        """`events` is the broker's event log. If none is passed, an event log is created."""
        metrics.declare(self._families)
        metrics.declare(self._log_families)
        self.traffic = Traffic(metrics, self._count_traffic)
        self.events = EventLog(clock.wall_ms, metrics) if events is None else events
        self.view = view
        self.clock = clock
        self.threads = threads
        self._store = store
        self.config = config
        self._replicas: dict[tuple[str, int], Replica] = {}  # by topic and partition
        # the hosted topics' own settings
        self._overrides: dict[str, Mapping[str, str]] = {}
        self._offline: set[TopicPartition] = set()
        self._replicated: dict[Replica, None] = {}  # led by this broker, with followers on others
        self._live: Mapping[int, int] = {}
        self._shortage = Shortage(clock)
        self.read_failures = ReadFailures(clock)
        writes = StagedWrites(self, clock)
        self.dirty = writes.dirty
        self.write_staged = writes.write
        self.write_soon = writes.write_soon
        self.start_flush = writes.start_flush
        self.converting: set[str] = set()
        """The topics whose batches must be prepared before they are appended (see
        `storage.batch_validation.prepare`).
        """

    def __len__(self) -> int:
        return len(self._replicas)

    def __iter__(self) -> Iterator[Replica]:
        return iter(self._replicas.values())

    @property
    def store(self) -> LogStore:
        return self._store

    # --- metrics (RE-14) -------------------------------------------------------------------------

    def _families(self) -> Iterator[Family]:
        led = [replica for replica in self if replica.partition.is_leader]
        short = sum(map(_is_under_replicated, led))
        too_short = sum(not replica.partition.has_enough_in_sync() for replica in led)
        offline = len(self._offline)
        for name, value, sentence in (
            ("PartitionCount", len(self) + offline, "Replicas hosted by this broker"),
            ("LeaderCount", len(led), "Partitions led by this broker"),
            (
                "UnderReplicatedPartitions",
                short,
                "Partitions led by this broker with replicas out of sync",
            ),
            (
                "UnderMinIsrPartitionCount",
                too_short,
                "Partitions led by this broker whose ISR is below min.insync.replicas",
            ),
            (
                "OfflineReplicaCount",
                offline,
                "Replicas of this broker whose log directory has failed",
            ),
        ):
            mbean = f"kafka.server:type=ReplicaManager,name={name}"
            yield gauge(mbean, sentence, [Sample(value)])

    def _count_traffic(self) -> None:
        for replica in self:
            replica.count_traffic()

    def _log_families(self) -> Iterator[Family]:
        """Yield the metric families for all replicas' logs.

        The logs are read while the page is rendered.
        """
        for name, sentence, read in _OF_LOGS:
            yield gauge(f"kafka.log:type=Log,name={name}", sentence, _of_logs(list(self), read))
        # Published dashboards list topics by this name. For each partition that another broker
        # leads, Kafka reports 0.
        yield gauge(
            "kafka.cluster:type=Partition,name=ReplicasCount",
            "Replicas of a partition led by this broker",
            _replica_counts([replica for replica in self if replica.partition.is_leader]),
        )
        yield gauge(
            "kafka.log:type=LogManager,name=OfflineLogDirectoryCount",
            "Log directories that have failed",
            [Sample(len(self._store.directories.failed))],
        )
        yield from _volume_families(self._store.directories)

    # --- lookup ----------------------------------------------------------------------------------

    def leader_of(self, topic_partition: tuple[str, int], leader_epoch: int = NO_EPOCH) -> Replica:
        """Return the replica if this broker is the partition's leader. Otherwise, raise the error
        for the client.

        `leader_epoch` is the leader epoch known to the client. As in Kafka, it is compared before
        anything else is checked.
        """
        replica = self.replica_of(topic_partition, leader_epoch)
        if not replica.partition.is_leader:
            raise NotLeaderOrFollower(f"this broker does not lead {replica.topic_partition}")
        return replica

    def replica_of(self, topic_partition: tuple[str, int], leader_epoch: int = NO_EPOCH) -> Replica:
        """Return the replica, whether it is the leader or a follower, or raise the error for the
        client.
        """
        # A plain tuple is sufficient. It is equal to the TopicPartition and takes only a tenth of
        # the time to build.
        replica = self._replicas.get(topic_partition)
        if replica is None:
            raise self._missing(topic_partition)
        # Compare the leader epochs to see which side is out of date. The error is
        # FENCED_LEADER_EPOCH or UNKNOWN_LEADER_EPOCH (KIP-320).
        if leader_epoch != NO_EPOCH:
            replica.partition.check_leader_epoch(leader_epoch)
        return replica

    def get(self, topic_partition: tuple[str, int]) -> Replica | None:
        """Return the replica, or None if this broker does not host it."""
        return self._replicas.get(topic_partition)

    def hosts(self, replica: Replica) -> bool:
        """Return whether this replica object is still hosted.

        Another object may have replaced it during an `await`.
        """
        return self._replicas.get(replica.topic_partition) is replica

    def _missing(self, topic_partition: tuple[str, int]) -> KafkaError:
        name = TopicPartition(*topic_partition)
        if name in self._offline:
            return KafkaStorageError(f"the log directory of {name} is offline")
        # A known partition is on another broker, and clients find that broker when they refresh
        # their metadata. An unknown partition may have been deleted.
        kind = NotLeaderOrFollower if self.view.is_known(name) else UnknownTopicOrPartition
        return kind(f"{name} is not hosted by this broker")

    def latest_epoch_of(self, name: TopicPartition) -> int:
        """Return the last leader epoch in this broker's log, or -1 if there is no log. The
        partition need not be hosted.

        A controller uses this if its metadata does not contain the leader epoch (ZK-6).
        """
        log = self._store.logs.get(name)
        return -1 if log is None else log.epochs.latest

    @property
    def has_staged(self) -> bool:
        """Return whether there are staged appends that have yet to be written."""
        return bool(self.dirty)

    def high_watermarks(self) -> dict[TopicPartition, int]:
        """Return the high watermarks of all hosted partitions, to be checkpointed."""
        return {replica.topic_partition: replica.high_watermark for replica in self}

    # --- adding and removing (role_changes, replica_removal) -------------------------------------

    def add(self, replica: Replica) -> None:
        """Start hosting the replica."""
        # Pass the live brokers, because the high watermark must not wait for a replica on a dead
        # broker.
        replica.partition.brokers_changed(self._live)
        replica.partition.on_registered(self.view.broker_epoch)
        replica.partition.on_log_start_moved(replica.log.log_start_offset)
        self._replicas[replica.topic_partition] = replica
        self._note_converting(replica.log)

    def remove(self, replica: Replica) -> None:
        """Stop hosting the replica."""
        del self._replicas[replica.topic_partition]
        replica.count_traffic()
        self.traffic.leave(replica.topic_partition.topic)
        self._replicated.pop(replica, None)

    def role_changed(self, replica: Replica) -> None:
        """Update the sets of replicas after a replica has changed its role or its own set of
        replicas.
        """
        # The ISR has to be checked only on leaders that have followers.
        if replica.partition.is_leader and len(replica.partition.replicas) > 1:
            self._replicated[replica] = None
        else:
            self._replicated.pop(replica, None)

    @property
    def offline(self) -> frozenset[TopicPartition]:
        """Return this broker's partitions that are in an offline log directory."""
        return frozenset(self._offline)

    def mark_offline(self, *names: TopicPartition) -> None:
        """Record that the logs of these partitions cannot be accessed."""
        self._offline.update(names)

    def is_offline(self, name: TopicPartition) -> bool:
        return name in self._offline

    def forget_offline(self, name: TopicPartition) -> None:
        """Forget an offline partition because this broker no longer hosts it."""
        self._offline.discard(name)

    # --- other brokers ---------------------------------------------------------------------------

    def brokers_changed(self) -> None:
        """Update the set of live brokers, so that no high watermark waits for dead brokers."""
        live = self.view.live_brokers()
        if live == self._live:
            return
        self._live = live
        now_ms = self.clock.monotonic_ms()
        for replica in list(self):
            replica.carry_out(replica.partition.brokers_changed(live, now_ms))

    def on_registered(self, broker_epoch: int) -> None:
        """Notify all partitions that this broker has registered again."""
        for replica in self:
            replica.partition.on_registered(broker_epoch)

    def check_isr(self, now_ms: int) -> None:
        """Remove followers that lag behind from the ISRs of the partitions that this broker leads
        (RE-8).
        """
        for replica in list(self._replicated):
            replica.carry_out(replica.partition.expire(now_ms))

    # --- configuration ---------------------------------------------------------------------------

    def log_config(self, topic: str, overrides: Mapping[str, str]) -> LogConfig:
        """Store a topic's settings, and return its log config."""
        self._overrides[topic] = overrides
        return self.config.value.log_config(overrides)

    def update_topic_config(self, topic: str, overrides: Mapping[str, str]) -> None:
        """Apply the new settings of a topic to its logs."""
        self._overrides[topic] = overrides
        for replica in self:
            if replica.topic_partition.topic == topic:
                self._configure(replica)

    def broker_config_changed(self, _config: BrokerConfig) -> None:
        """Apply new settings of the broker, which are the defaults for all topics."""
        for replica in self:
            self._configure(replica)

    def _configure(self, replica: Replica) -> None:
        overrides = self._overrides.get(replica.topic_partition.topic, {})
        config = self.config.value.log_config(overrides)
        replica.log.config = config
        replica.partition.configure(config.min_insync_replicas)
        self._note_converting(replica.log)

    def _note_converting(self, log: Log) -> None:
        if log.limits.needs_preparation:
            self.converting.add(log.topic_partition.topic)
        else:
            self.converting.discard(log.topic_partition.topic)

    # --- file descriptors ------------------------------------------------------------------------

    def is_short_of_descriptors(self, error: OSError) -> bool:
        """Return whether the error is a lack of file descriptors rather than a disk failure.

        If so, log it once.
        """
        if not is_out_of_descriptors(error):
            return False
        self._shortage.on_error(error)
        return True


_OF_LOGS: tuple[tuple[str, str, Callable[[Log], int]], ...] = (
    ("Size", "Size of a replica's log in bytes", attrgetter("size_bytes")),
    ("LogStartOffset", "Start offset of a replica's log", attrgetter("log_start_offset")),
    ("LogEndOffset", "End offset of a replica's log", attrgetter("log_end_offset")),
    ("NumLogSegments", "Number of segments of a replica's log", lambda log: len(log.segments)),
)


def _of_logs(replicas: Sequence[Replica], read: Callable[[Log], int]) -> Iterator[Sample]:
    for replica in replicas:
        topic, partition = replica.topic_partition
        yield Sample(read(replica.log), (("topic", topic), ("partition", str(partition))))


def _replica_counts(led: Sequence[Replica]) -> Iterator[Sample]:
    for replica in led:
        topic, partition = replica.topic_partition
        labels = (("topic", topic), ("partition", str(partition)))
        yield Sample(len(replica.partition.replicas), labels)


def _volume_families(directories: LogDirectories) -> Iterator[Family]:
    """Yield the space on the volumes. Kafka reports it only in DescribeLogDirs (KIP-827).

    Directories that are on the same volume report the same numbers.
    """
    spaces = []
    for path in directories.online:
        # If the disk has failed, the next append takes the directory offline.
        with suppress(OSError):
            space, _ = directories.volume(path, with_strays=False)
            spaces.append((space, (("directory", str(path)),)))
    yield gauge(
        "barnabas_log_directory_size_bytes",
        "Size of the volume of an online log directory",
        [Sample(space.total_bytes, labels) for space, labels in spaces],
    )
    yield gauge(
        "barnabas_log_directory_free_bytes",
        "Space that the broker can still use on the volume of an online log directory",
        [Sample(space.usable_bytes, labels) for space, labels in spaces],
    )


def _is_under_replicated(replica: Replica) -> bool:
    """Return whether any replica is out of sync.

    As in Kafka, replicas that are being added do not count.
    """
    partition = replica.partition
    wanted = len(partition.replicas)
    if replica.adding:
        wanted = len(set(partition.replicas).difference(replica.adding))
    return len(partition.isr) < wanted
