"""Checks that a transactional write belongs to an open transaction (KIP-890, part 1).

A batch that arrives after its transaction has ended would start a hanging transaction, which no
client ever ends, and read_committed consumers would wait indefinitely. Therefore, a transaction's
first batch in a partition is appended only if the transaction coordinator has recorded the
partition; for later batches, the open transaction in the log is sufficient. Nothing is awaited
between the check and the append, so no marker can come between the two.

`transaction.partition.verification.enable=false` disables verification.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from barnabas.errors import (
    NONE,
    ConcurrentTransactions,
    CoordinatorLoadInProgress,
    CoordinatorNotAvailable,
    InvalidProducerEpoch,
    InvalidTxnState,
    KafkaError,
    NotCoordinator,
    NotEnoughReplicas,
    ProducerFenced,
    TransactionAbortable,
    error_for_code,
)

if TYPE_CHECKING:
    from barnabas.broker.configs.current_config import CurrentConfig
    from barnabas.broker.coordinator.coordinators import Coordinators
    from barnabas.broker.coordinator.verifier import Unverified, Verifier
    from barnabas.broker.partitions.replica import Replica
    from barnabas.broker.partitions.replicas import Replicas
    from barnabas.coordinator.decision import TransactionalBatch
    from barnabas.types import TopicPartition

# Coordinator errors that may be gone when the producer retries.
_PASSING = (
    ConcurrentTransactions,
    CoordinatorLoadInProgress,
    CoordinatorNotAvailable,
    NotCoordinator,
)


class Verification:
    """Asks the local coordinator, or uses the responses of a remote one."""

    __slots__ = ("_config", "_coordinators", "_replicas", "_verifier")

    def __init__(
        self,
        config: CurrentConfig,
        replicas: Replicas,
        coordinators: Coordinators,
        verifier: Verifier | None,
    ) -> None:
        """`verifier` is None if there are no other brokers."""
        self._config = config
        self._replicas = replicas
        self._coordinators = coordinators
        self._verifier = verifier

    @property
    def may_wait(self) -> bool:
        """Whether a coordinator can be on another broker."""
        return self._verifier is not None

    @property
    def _is_enabled(self) -> bool:
        return self._config.bool("transaction.partition.verification.enable")

    def check_open(
        self, replica: Replica, batch: TransactionalBatch, *, knows_abortable: bool
    ) -> None:
        """Check that the producer has an open transaction in this partition or can start one.

        The transaction coordinator decides whether it can start one. Raises the error for the
        producer.

        Call this right before the append. With `knows_abortable`, the producer gets
        TRANSACTION_ABORTABLE, otherwise INVALID_TXN_STATE. A temporary error becomes
        NOT_ENOUGH_REPLICAS, which every producer retries.
        """
        # Fast path for every batch except the first of a transaction in a partition.
        if not self._is_enabled or _is_open(replica, batch):
            return
        try:
            code = self._answer(replica.topic_partition, batch)
            if code != NONE:
                raise error_for_code(code)
        except _PASSING as error:
            raise NotEnoughReplicas(
                f"{replica.topic_partition}: cannot verify yet whether it is in the transaction: "
                f"{error}"
            ) from error
        # As in Kafka, Produce returns INVALID_PRODUCER_EPOCH for this error.
        except ProducerFenced as error:
            raise InvalidProducerEpoch(str(error)) from error
        except TransactionAbortable as error:
            message = f"{replica.topic_partition} was not added to the transaction"
            raise (TransactionAbortable if knows_abortable else InvalidTxnState)(message) from error

    def _answer(self, topic_partition: TopicPartition, batch: TransactionalBatch) -> int:
        """Return the local coordinator's error code, or the remote one's from an earlier
        request."""
        if self._verifier is not None and self._verifier.is_elsewhere(batch.transactional_id):
            return self._verifier.take(topic_partition, batch)
        machine = self._coordinators.transactions.shard_of(batch.transactional_id).machine
        return machine.verify(*batch, [topic_partition])[topic_partition]

    async def verify(self, batches: Iterable[Unverified]) -> None:
        """Ask the coordinator about these batches, and store the response for `check_open`."""
        wanted = self.unverified_batches(batches)
        if wanted and self._verifier is not None:
            await self._verifier.verify(wanted)

    def unverified_batches(self, batches: Iterable[Unverified]) -> list[Unverified]:
        """Return the batches that a remote coordinator must verify before they are appended."""
        verifier = self._verifier
        if verifier is None or not self._is_enabled:
            return []
        found = []
        for each in batches:
            if not verifier.is_elsewhere(each.batch.transactional_id):
                continue
            try:
                replica = self._replicas.leader_of(each.topic_partition)
            except KafkaError:
                continue  # the append fails for the same reason
            if not _is_open(replica, each.batch):
                found.append(each)
        return found


def _is_open(replica: Replica, batch: TransactionalBatch) -> bool:
    """Return whether the producer has an open transaction in this partition's log."""
    known = replica.log.producers.get(batch.producer_id)
    return known is not None and known.epoch == batch.producer_epoch and known.has_open_transaction
