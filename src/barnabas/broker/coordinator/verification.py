"""Checks that each transactional write belongs to an open transaction (KIP-890, part 1).

If a batch were appended after its transaction had ended, it would start a hanging transaction. No
client would ever end that transaction, and read_committed consumers would wait indefinitely. For
this reason, the first batch of a transaction in a partition is appended only if the transaction
coordinator has recorded that the transaction includes the partition. For later batches, it is
sufficient that the log contains the open transaction. Nothing is awaited between the check and the
append, so no marker can be written between them.

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

# Coordinator errors that may no longer occur when the producer retries.
_PASSING = (
    ConcurrentTransactions,
    CoordinatorLoadInProgress,
    CoordinatorNotAvailable,
    NotCoordinator,
)


class Verification:
    """Asks the coordinator on this broker, or uses the responses of a remote coordinator."""

    __slots__ = ("_config", "_coordinators", "_replicas", "_verifier")

    def __init__(
        self,
        config: CurrentConfig,
        replicas: Replicas,
        coordinators: Coordinators,
        verifier: Verifier | None,
    ) -> None:
        """`verifier` is None if this is the only broker."""
        self._config = config
        self._replicas = replicas
        self._coordinators = coordinators
        self._verifier = verifier

    @property
    def may_wait(self) -> bool:
        """Whether the coordinator may be on another broker."""
        return self._verifier is not None

    @property
    def _is_enabled(self) -> bool:
        return self._config.bool("transaction.partition.verification.enable")

    def check_open(
        self, replica: Replica, batch: TransactionalBatch, *, knows_abortable: bool
    ) -> None:
        """Check that the producer has an open transaction in this partition, or that the
        transaction coordinator allows it to start one. Raises the error to return to the producer.

        Call this immediately before the append. If `knows_abortable`, the producer gets
        TRANSACTION_ABORTABLE, otherwise INVALID_TXN_STATE. A temporary error is converted to
        NOT_ENOUGH_REPLICAS, because every producer retries after that error.
        """
        # This is the fast path for all batches except the first batch of a transaction in a
        # partition.
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
        # As in Kafka, the response to Produce is INVALID_PRODUCER_EPOCH in this case.
        except ProducerFenced as error:
            raise InvalidProducerEpoch(str(error)) from error
        except TransactionAbortable as error:
            message = f"{replica.topic_partition} was not added to the transaction"
            raise (TransactionAbortable if knows_abortable else InvalidTxnState)(message) from error

    def _answer(self, topic_partition: TopicPartition, batch: TransactionalBatch) -> int:
        """Return the local coordinator's error code, or the code that a remote coordinator returned
        earlier.
        """
        if self._verifier is not None and self._verifier.is_elsewhere(batch.transactional_id):
            return self._verifier.take(topic_partition, batch)
        machine = self._coordinators.transactions.shard_of(batch.transactional_id).machine
        return machine.verify(*batch, [topic_partition])[topic_partition]

    async def verify(self, batches: Iterable[Unverified]) -> None:
        """Ask the coordinator about these batches, and store its response for `check_open`."""
        wanted = self.unverified_batches(batches)
        if wanted and self._verifier is not None:
            await self._verifier.verify(wanted)

    def unverified_batches(self, batches: Iterable[Unverified]) -> list[Unverified]:
        """Return the batches that a remote coordinator must verify before they can be appended."""
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
                continue  # the append will fail for the same reason
            if not _is_open(replica, each.batch):
                found.append(each)
        return found


def _is_open(replica: Replica, batch: TransactionalBatch) -> bool:
    """Return whether this partition's log contains an open transaction of the producer."""
    known = replica.log.producers.get(batch.producer_id)
    return known is not None and known.epoch == batch.producer_epoch and known.has_open_transaction
