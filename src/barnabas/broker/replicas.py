"""The set of partitions that this broker hosts, and what the controller tells it about them.

LeaderAndIsr, UpdateMetadata and StopReplica arrive as values; here they become directories, logs
and roles. Between the controller's word and the disk there is no second way, for one node either.
"""

from __future__ import annotations

from collections.abc import Iterator

from barnabas.broker.replica import Replica
from barnabas.cluster.control import LeaderAndIsr, PartitionState, StopReplica
from barnabas.config import BrokerConfig
from barnabas.errors import NotLeaderOrFollower, UnknownTopicOrPartition
from barnabas.replication.partition import Partition
from barnabas.storage.store import LogStore
from barnabas.types import TopicPartition


class Replicas:
    """Every replica on this broker, by topic and partition."""

    __slots__ = ("_broker_id", "_config", "_replicas", "_store")

    def __init__(self, broker_id: int, store: LogStore, config: BrokerConfig) -> None:
        self._broker_id = broker_id
        self._store = store
        self._config = config
        self._replicas: dict[TopicPartition, Replica] = {}

    def __len__(self) -> int:
        return len(self._replicas)

    def __iter__(self) -> Iterator[Replica]:
        return iter(self._replicas.values())

    def leader_of(self, topic_partition: TopicPartition) -> Replica:
        """The replica, if this broker leads the partition; else the row that a client must get."""
        replica = self._replicas.get(topic_partition)
        if replica is None:
            raise UnknownTopicOrPartition(f"{topic_partition} is not hosted by this broker")
        if not replica.partition.is_leader:
            raise NotLeaderOrFollower(f"this broker does not lead {topic_partition}")
        return replica

    def apply_leader_and_isr(self, request: LeaderAndIsr) -> None:
        """Host, lead or follow as the controller says; an older leader epoch changes nothing."""
        for state in request.partitions:
            replica = self._replicas.get(state.topic_partition)
            if replica is None:
                replica = self._host(state)
            partition = replica.partition
            if state.partition.leader_epoch <= partition.leader_epoch:
                continue
            if state.partition.leader == self._broker_id:
                log = replica.log
                # Before any append: an epoch starts at the log end that its leader found.
                log.assign_leader_epoch(state.partition.leader_epoch)
                partition.become_leader(state.partition, log.log_end_offset)
            else:
                partition.become_follower(state.partition)
                replica.stopped()

    def apply_stop_replica(self, request: StopReplica) -> None:
        """Stop hosting the partitions, and delete their data if so told."""
        for topic_partition in request.partitions:
            replica = self._replicas.pop(topic_partition, None)
            if replica is not None:
                replica.stopped()
            if request.delete and topic_partition in self._store.logs:
                self._store.delete(topic_partition)

    def high_watermarks(self) -> dict[TopicPartition, int]:
        """Of all hosted partitions, for their checkpoint."""
        return {name: replica.high_watermark for name, replica in self._replicas.items()}

    def _host(self, state: PartitionState) -> Replica:
        name = state.topic_partition
        config = self._config.log_config(state.topic_config)
        log = self._store.logs.get(name)
        if log is None:
            log = self._store.create(name, state.topic_id, config)
        else:
            log.config = config  # it was opened before anybody knew its topic's settings
        checkpointed = self._store.high_watermarks.get(name, 0)
        partition = Partition(
            name,
            self._broker_id,
            min_insync_replicas=config.min_insync_replicas,
            high_watermark=max(log.log_start_offset, min(checkpointed, log.log_end_offset)),
        )
        replica = Replica(log, partition)
        self._replicas[name] = replica
        return replica
