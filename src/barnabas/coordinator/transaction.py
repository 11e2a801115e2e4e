"""Defines the state of a transactional id: its producer and its transaction (KIP-98, KIP-360).

                          EndTxn(commit)                 all markers written
    Empty ------> Ongoing -------------> PrepareCommit --------------------> CompleteCommit
          add        |    EndTxn(abort)                  all markers written
          partitions +-----------------> PrepareAbort ---------------------> CompleteAbort
                          timeout, fenced: epoch + 1

From Complete, adding partitions begins the next transaction (Ongoing), and InitProducerId assigns a
new epoch (Empty). Once a Prepare record is in the log, the outcome is final, under any coordinator.
In Kafka, PrepareEpochFence and Dead mean that a record is being appended to the log. Barnabas
appends and applies a decision in one step, so neither occurs.

A `Transaction` is a value with exactly the content of its id's last record, and each record
replaces it. `Transactions`, not this class, checks that a step is valid.
"""

from __future__ import annotations

from typing import NamedTuple

from barnabas.coordinator.decision import StateRecord
from barnabas.coordinator.records import (
    TransactionKey,
    TransactionPartitions,
    TransactionStatus,
    TransactionValue,
)
from barnabas.errors import (
    ConcurrentTransactions,
    CorruptData,
    InvalidProducerIdMapping,
    ProducerFenced,
)
from barnabas.types import TopicPartition, by_topic

MAX_EPOCH = 32767
LAST_EPOCH = MAX_EPOCH - 1
"""The last epoch that a producer can get.

The next one is reserved for fencing, after which the producer gets a new id.
"""

NOT_BEGUN = -1

_WRITTEN = frozenset(
    {
        TransactionStatus.Empty,
        TransactionStatus.Ongoing,
        TransactionStatus.PrepareCommit,
        TransactionStatus.PrepareAbort,
        TransactionStatus.CompleteCommit,
        TransactionStatus.CompleteAbort,
    }
)
_COMPLETED = frozenset({TransactionStatus.CompleteCommit, TransactionStatus.CompleteAbort})
_DECIDED = frozenset({TransactionStatus.PrepareCommit, TransactionStatus.PrepareAbort})


class Owner(NamedTuple):
    """The current producer of a transactional id; every other producer is fenced."""

    producer_id: int
    producer_epoch: int


class Transaction(NamedTuple):
    """The state of one transactional id."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    status: TransactionStatus
    partitions: frozenset[TopicPartition]
    """The partitions of the transaction that have no marker yet."""
    updated_ms: int
    begun_ms: int
    """When the current or last transaction began (ms); -1 if none began since InitProducerId."""

    # --- checks --------------------------------------------------------------------------

    @property
    def owner(self) -> Owner:
        return Owner(self.producer_id, self.producer_epoch)

    @property
    def is_ongoing(self) -> bool:
        return self.status is TransactionStatus.Ongoing

    @property
    def is_decided(self) -> bool:
        """True from the decision on the outcome until every marker is written."""
        return self.status in _DECIDED

    @property
    def is_completed(self) -> bool:
        """True if the last transaction has ended and no other has begun."""
        return self.status in _COMPLETED

    @property
    def is_commit(self) -> bool:
        return self.status in (TransactionStatus.PrepareCommit, TransactionStatus.CompleteCommit)

    @property
    def has_last_epoch(self) -> bool:
        """True if the next producer gets a new id instead of the next epoch."""
        return self.producer_epoch >= LAST_EPOCH

    def check(self, producer_id: int, producer_epoch: int) -> None:
        """Raise a KafkaError unless this producer may change the transaction."""
        self.check_owner(producer_id, producer_epoch)
        # The client must retry, because its next transaction cannot start before the markers of
        # this one are written.
        if self.is_decided:
            raise ConcurrentTransactions

    def check_owner(self, producer_id: int, producer_epoch: int) -> None:
        """Raise InvalidProducerIdMapping or ProducerFenced for any producer except the latest."""
        if producer_id != self.producer_id:
            raise InvalidProducerIdMapping
        if producer_epoch != self.producer_epoch:
            raise ProducerFenced

    # --- next states -------------------------------------------------------------------------

    def with_partitions(self, added: frozenset[TopicPartition], wall_ms: int) -> Transaction:
        """Return the transaction with more partitions; the first ones start it."""
        is_new = not self.is_ongoing
        return self._replace(
            status=TransactionStatus.Ongoing,
            partitions=added if is_new else self.partitions | added,
            updated_ms=wall_ms,
            begun_ms=wall_ms if is_new else self.begun_ms,
        )

    def with_outcome(self, is_commit: bool, wall_ms: int) -> Transaction:
        """Return the transaction with its outcome decided."""
        prepared = TransactionStatus.PrepareCommit if is_commit else TransactionStatus.PrepareAbort
        return self._replace(status=prepared, updated_ms=wall_ms)

    def with_fenced_producer(self, wall_ms: int) -> Transaction:
        """Return the transaction aborted under the next epoch, which no producer receives."""
        # KIP-98: markers with this epoch fence the producer in every partition it has written to.
        bumped = min(self.producer_epoch + 1, MAX_EPOCH)
        return self.with_outcome(False, wall_ms)._replace(producer_epoch=bumped)

    def with_all_markers(self, wall_ms: int) -> Transaction:
        """Return the transaction in its state once every partition has a marker."""
        is_commit = self.status is TransactionStatus.PrepareCommit
        return self._replace(
            status=(
                TransactionStatus.CompleteCommit if is_commit else TransactionStatus.CompleteAbort
            ),
            partitions=frozenset(),
            updated_ms=wall_ms,
        )

    # --- as a record -----------------------------------------------------------------------------

    def record(self) -> StateRecord:
        """Return the transaction's record."""
        partitions = None
        # If no transaction has begun, Kafka writes null instead of an empty list.
        if self.status is not TransactionStatus.Empty:
            partitions = [
                TransactionPartitions(topic=topic, partition_ids=numbers)
                for topic, numbers in by_topic(sorted(self.partitions)).items()
            ]
        value = TransactionValue(
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            transaction_timeout_ms=self.timeout_ms,
            transaction_status=self.status,
            transaction_partitions=partitions,
            last_update_timestamp_ms=self.updated_ms,
            start_timestamp_ms=self.begun_ms,
        )
        return StateRecord(TransactionKey(transactional_id=self.transactional_id), value)


def new_transaction(
    transactional_id: str, owner: Owner, timeout_ms: int, wall_ms: int
) -> Transaction:
    """Return the state of a transactional id with a new owner and no transaction."""
    status, partitions = TransactionStatus.Empty, frozenset[TopicPartition]()
    return Transaction(transactional_id, *owner, timeout_ms, status, partitions, wall_ms, NOT_BEGUN)


def transaction_of(key: TransactionKey, value: TransactionValue) -> Transaction:
    """Restore the transaction from its record. Raises CorruptData if no coordinator wrote it."""
    name = key.transactional_id
    if value.transaction_status not in _WRITTEN:
        raise CorruptData(
            f"transactional id {name!r} has invalid status {value.transaction_status}"
        )
    return Transaction(
        name,
        value.producer_id,
        value.producer_epoch,
        value.transaction_timeout_ms,
        TransactionStatus(value.transaction_status),
        frozenset(
            TopicPartition(topic.topic, partition)
            for topic in value.transaction_partitions or ()
            for partition in topic.partition_ids
        ),
        value.last_update_timestamp_ms,
        value.start_timestamp_ms,
    )
