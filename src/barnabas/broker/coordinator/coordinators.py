"""Provides the group coordinator and the transaction coordinator of this broker.

Each coordinator is created when the broker first becomes the leader of a partition of its topic. A
broker without groups and transactions therefore loads neither of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from barnabas.broker.coordinator.marker_append import MarkerAppend
from barnabas.broker.partitions.replica_listener import ReplicaListener
from barnabas.cluster.layout import GROUP_TOPIC, INTERNAL_TOPICS, TRANSACTION_TOPIC
from barnabas.metrics import Family, Sample, gauge

if TYPE_CHECKING:
    from barnabas.broker.cluster_view import ClusterView
    from barnabas.broker.configs.current_config import CurrentConfig
    from barnabas.broker.coordinator.marker_channel import MarkerChannels
    from barnabas.broker.coordinator.shard import ShardContext
    from barnabas.broker.coordinator.shards import Shards
    from barnabas.broker.coordinator.verifier import Verifier
    from barnabas.broker.partitions.replica import Replica
    from barnabas.broker.partitions.replicas import Replicas
    from barnabas.broker.runtime.watched_clock import WatchedClock
    from barnabas.coordinator.groups import Groups
    from barnabas.coordinator.transactions import Transactions


_GROUP_STATES = ("Empty", "PreparingRebalance", "CompletingRebalance", "Stable", "Dead")
_TRANSACTION_STATES = (
    *("Empty", "Ongoing", "PrepareCommit", "PrepareAbort"),
    *("CompleteCommit", "CompleteAbort"),
)


class Coordinators(ReplicaListener):
    """Assigns each partition of an internal topic to the coordinator that is responsible for it."""

    __slots__ = (
        "_channels",
        "_clock",
        "_config",
        "_groups",
        "_replicas",
        "_transactions",
        "_view",
        "marker_append",
    )

    def __init__(
        self,
        view: ClusterView,
        config: CurrentConfig,
        clock: WatchedClock,
        replicas: Replicas,
        verifier: Verifier | None = None,
        channels: MarkerChannels | None = None,
    ) -> None:
        """`verifier` and `channels` connect to other brokers. Both are None if the cluster has only
        one broker.
        """
        self._view = view
        self._config = config
        self._clock = clock
        self._replicas = replicas
        self._channels = channels
        self._groups: Shards[Groups] | None = None
        self._transactions: Shards[Transactions] | None = None
        self.marker_append = MarkerAppend(clock, replicas, verifier, self._offsets_ended)
        """Appends markers to the partitions that this broker leads."""

    @property
    def groups(self) -> Shards[Groups]:
        """The partitions of the group coordinator on this broker."""
        if self._groups is None:
            self._groups = self._make_groups()
        return self._groups

    @property
    def transactions(self) -> Shards[Transactions]:
        """The partitions of the transaction coordinator on this broker."""
        if self._transactions is None:
            self._transactions = self._make_transactions()
        return self._transactions

    def families(self) -> Iterator[Family]:
        """Yield metrics of the groups and transactional ids that this broker coordinates, without
        loading a coordinator.
        """
        if self._groups is not None:
            machines = [shard.machine for shard in self._groups.ready]
            groups = [group for each in machines for group in each.groups.values()]
            states = Counter(group.state.value for group in groups)
            counts = {f"NumGroups{state}": states[state] for state in _GROUP_STATES}
            # As in Kafka, a group that has no members is counted if it has offsets.
            without = sum(len(each.offsets.groups.keys() - each.groups) for each in machines)
            counts["NumGroupsEmpty"] += without
            counts["NumGroups"] = sum(counts.values())
            counts["NumOffsets"] = sum(
                len(of_group.committed)
                for each in machines
                for of_group in each.offsets.groups.values()
            )
            for name, count in counts.items():
                mbean = f"kafka.coordinator.group:type=GroupMetadataManager,name={name}"
                yield gauge(mbean, "Coordinated by this broker", [Sample(count)])
        if self._transactions is not None:
            statuses = Counter(
                transaction.status.name
                for shard in self._transactions.ready
                for transaction in shard.machine
            )
            # Kafka has no metric for this, so the name is specific to Barnabas.
            yield gauge(
                "barnabas_transactional_ids",
                "Transactional ids coordinated by this broker, by the state of their transaction",
                [Sample(statuses[each], (("state", each),)) for each in _TRANSACTION_STATES],
            )

    def on_leading(self, replica: Replica) -> None:
        topic = replica.topic_partition.topic
        if topic in INTERNAL_TOPICS:
            (self.groups if topic == GROUP_TOPIC else self.transactions).take(replica)

    def on_left(self, replica: Replica) -> None:
        topic, partition = replica.topic_partition
        if topic in INTERNAL_TOPICS:
            (self.groups if topic == GROUP_TOPIC else self.transactions).drop(partition)

    def brokers_changed(self) -> None:
        """Do nothing, because no coordinator depends on which brokers are live."""

    def topics_deleted(self, names: Sequence[str]) -> None:
        """Remove all offsets that groups have committed for these topics."""
        if self._groups is not None:
            for shard in self._groups.ready:
                shard.carry_out(shard.machine.topics_deleted(names))

    def close(self) -> None:
        """Fail all requests that are still waiting, because the broker is stopping."""
        for shards in (self._groups, self._transactions):
            if shards is not None:
                shards.close()

    def _offsets_ended(self, partition: int, producer_id: int, is_commit: bool) -> None:
        """Commit or discard a transaction's offsets once its marker has been committed (KIP-98)."""
        shard = self.groups.shard_at(partition)
        if shard is not None:  # otherwise the shard will replay the marker
            shard.machine.end_transaction(producer_id, is_commit)

    def _make_groups(self) -> Shards[Groups]:
        from barnabas.broker.coordinator.shards import Shards
        from barnabas.coordinator.groups import Groups
        from barnabas.coordinator.records import decode_group_record
        from barnabas.coordinator.settings import GroupConfig

        config = GroupConfig.of(self._config.value)
        return Shards(
            GROUP_TOPIC,
            lambda partition, epoch: Groups(partition, epoch, config),
            decode_group_record,
            self._context("offsets.load.buffer.size", "offsets.topic.compression.codec"),
            partial(self._partition_count, GROUP_TOPIC),
        )

    def _make_transactions(self) -> Shards[Transactions]:
        from barnabas.broker.coordinator.shards import Shards
        from barnabas.coordinator.records import decode_transaction_record
        from barnabas.coordinator.settings import TransactionConfig
        from barnabas.coordinator.transactions import Transactions

        config = TransactionConfig.of(self._config.value)
        return Shards(
            TRANSACTION_TOPIC,
            lambda partition, epoch: Transactions(partition, epoch, config),
            decode_transaction_record,
            self._context("transaction.state.log.load.buffer.size"),
            partial(self._partition_count, TRANSACTION_TOPIC),
        )

    def _context(self, load_bytes: str, codec: str = "") -> ShardContext:
        from barnabas.broker.coordinator.markers import MarkerRoutes, MarkerWriter
        from barnabas.broker.coordinator.shard import ShardContext
        from barnabas.records.compression import NONE

        config, replicas = self._config, self._replicas
        routes = MarkerRoutes(self._view, replicas, self.marker_append, self._channels)
        return ShardContext(
            self._clock,
            replicas.write_soon,
            replicas.threads.background,
            config.int(codec) if codec else NONE,
            config.int("offsets.commit.timeout.ms"),
            config.int(load_bytes),
            MarkerWriter(routes).send,
            replicas.events,
        )

    def _partition_count(self, topic: str) -> int:
        image = self._view.image.topics.get(topic)
        return 0 if image is None else len(image.partitions)
