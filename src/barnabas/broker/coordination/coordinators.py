"""Both coordinators of this broker, made when the first partition of their topics is led here.

A broker that has neither groups nor transactions loads nothing of this at its start.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from barnabas.cluster.layout import GROUP_TOPIC, INTERNAL_TOPICS, TRANSACTION_TOPIC
from barnabas.records.compression import NONE

if TYPE_CHECKING:
    from barnabas.broker.context import Node
    from barnabas.broker.coordination.shard import Surroundings
    from barnabas.broker.coordination.shards import Shards
    from barnabas.broker.partitions.replica import Replica
    from barnabas.coordinator.groups import Groups
    from barnabas.coordinator.transactions import Transactions


class Coordinators:
    """Hands each partition of an internal topic to the coordinator that it belongs to."""

    __slots__ = ("_groups", "_node", "_transactions")

    def __init__(self, node: Node) -> None:
        self._node = node
        self._groups: Shards[Groups] | None = None
        self._transactions: Shards[Transactions] | None = None

    @property
    def groups(self) -> Shards[Groups]:
        if self._groups is None:
            self._groups = self._make_groups()
        return self._groups

    @property
    def transactions(self) -> Shards[Transactions]:
        if self._transactions is None:
            self._transactions = self._make_transactions()
        return self._transactions

    def leading(self, replica: Replica) -> None:
        """This broker leads a partition in a new epoch."""
        topic = replica.topic_partition.topic
        if topic in INTERNAL_TOPICS:
            (self.groups if topic == GROUP_TOPIC else self.transactions).taken(replica)

    def left(self, replica: Replica) -> None:
        """This broker no longer leads a partition."""
        topic, partition = replica.topic_partition
        if topic in INTERNAL_TOPICS:
            (self.groups if topic == GROUP_TOPIC else self.transactions).dropped(partition)

    def topics_deleted(self, names: Sequence[str]) -> None:
        """What groups have committed of these topics is of no use to anybody."""
        if self._groups is not None:
            for shard in self._groups.loaded:
                shard.carry_out(shard.machine.topics_deleted(names))

    def close(self) -> None:
        """The broker stops."""
        for shards in (self._groups, self._transactions):
            if shards is not None:
                shards.close()

    def _make_groups(self) -> Shards[Groups]:
        from barnabas.broker.coordination.shards import Shards
        from barnabas.coordinator.groups import Groups
        from barnabas.coordinator.records import decode_group_record
        from barnabas.coordinator.settings import GroupConfig

        config = GroupConfig.of(self._node.config)
        return Shards(
            GROUP_TOPIC,
            lambda partition, epoch: Groups(partition, epoch, config),
            decode_group_record,
            self._surroundings(
                self._node.config.int("offsets.load.buffer.size"),
                self._node.config.int("offsets.topic.compression.codec"),
            ),
            lambda: self._count(GROUP_TOPIC),
        )

    def _make_transactions(self) -> Shards[Transactions]:
        from barnabas.broker.coordination.shards import Shards
        from barnabas.coordinator.records import decode_transaction_record
        from barnabas.coordinator.settings import TransactionConfig
        from barnabas.coordinator.transactions import Transactions

        config = TransactionConfig.of(self._node.config)
        return Shards(
            TRANSACTION_TOPIC,
            lambda partition, epoch: Transactions(partition, epoch, config),
            decode_transaction_record,
            self._surroundings(self._node.config.int("transaction.state.log.load.buffer.size")),
            lambda: self._count(TRANSACTION_TOPIC),
        )

    def _surroundings(self, load_bytes: int, codec: int = NONE) -> Surroundings:
        from barnabas.broker.coordination.markers import MarkerWriter
        from barnabas.broker.coordination.shard import Surroundings

        node = self._node
        return Surroundings(
            node.clock,
            node.replicas,
            codec,
            node.config.int("offsets.commit.timeout.ms"),
            load_bytes,
            MarkerWriter(node).send,
        )

    def _count(self, topic: str) -> int:
        image = self._node.image.topics.get(topic)
        return 0 if image is None else len(image.partitions)
