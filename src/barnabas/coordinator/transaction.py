"""Represents the state of a transactional id: its producer and its transaction (KIP-98, KIP-360).

                          EndTxn(commit)                 all markers written
    Empty ------> Ongoing -------------> PrepareCommit --------------------> CompleteCommit
          add        |    EndTxn(abort)                  all markers written
          partitions +-----------------> PrepareAbort ---------------------> CompleteAbort
                          timeout, fenced: epoch + 1

After a transaction has completed, adding partitions begins the next one (Ongoing), and
InitProducerId assigns a new epoch (Empty). Once a Prepare record is in the log, the outcome is
final for every coordinator. Kafka also has PrepareEpochFence and Dead, which exist while a record
is being appended to the log. Barnabas appends and applies each decision in one step, so these two
states never occur.

A `Transaction` is a value that contains exactly what is in the last record of its id, and each
record replaces it. Whether a step is valid is checked by `Transactions`, not by this class.
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
"""The highest epoch that a producer can receive.

The epoch after it is reserved for fencing; the producer then gets a new id.
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
    """The producer that currently uses a transactional id. Every other producer is fenced."""

    producer_id: int
    producer_epoch: int


class Transaction(NamedTuple):
    """The state of a transactional id."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    status: TransactionStatus
    partitions: frozenset[TopicPartition]
    """The partitions of the transaction that do not have a marker yet."""
    updated_ms: int
    begun_ms: int
    """When the current or last transaction began (ms), or -1 if none began since InitProducerId."""

    # --- checks --------------------------------------------------------------------------

    @property
    def owner(self) -> Owner:
        return Owner(self.producer_id, self.producer_epoch)

    @property
    def is_ongoing(self) -> bool:
        return self.status is TransactionStatus.Ongoing

    @property
    def is_decided(self) -> bool:
        """True after the outcome has been decided and before every marker has been written."""
        return self.status in _DECIDED

    @property
    def is_completed(self) -> bool:
        """True if the last transaction has ended and the next one has not begun."""
        return self.status in _COMPLETED

    @property
    def is_commit(self) -> bool:
        return self.status in (TransactionStatus.PrepareCommit, TransactionStatus.CompleteCommit)

    @property
    def has_last_epoch(self) -> bool:
        """True if the next producer must get a new producer id, because there is no next epoch."""
        return self.producer_epoch >= LAST_EPOCH

    def check(self, producer_id: int, producer_epoch: int) -> None:
        """Raise a KafkaError if this producer may not change the transaction."""
        self.check_owner(producer_id, producer_epoch)
        # The client must retry, because its next transaction cannot start until the markers of this
        # one are written.
        if self.is_decided:
            raise ConcurrentTransactions

    def check_owner(self, producer_id: int, producer_epoch: int) -> None:
        """Raise InvalidProducerIdMapping or ProducerFenced unless this is the latest producer."""
        if producer_id != self.producer_id:
            raise InvalidProducerIdMapping
        if producer_epoch != self.producer_epoch:
            raise ProducerFenced

    # --- next states -------------------------------------------------------------------------

    def with_partitions(self, added: frozenset[TopicPartition], wall_ms: int) -> Transaction:
        """Return the transaction with these partitions added.

        The first partitions start the transaction.
        """
        is_new = not self.is_ongoing
        return self._replace(
            status=TransactionStatus.Ongoing,
            partitions=added if is_new else self.partitions | added,
            updated_ms=wall_ms,
            begun_ms=wall_ms if is_new else self.begun_ms,
        )

    def with_outcome(self, is_commit: bool, wall_ms: int) -> Transaction:
        """Return the transaction after its outcome has been decided."""
        prepared = TransactionStatus.PrepareCommit if is_commit else TransactionStatus.PrepareAbort
        return self._replace(status=prepared, updated_ms=wall_ms)

    def with_fenced_producer(self, wall_ms: int) -> Transaction:
        """Return the transaction, aborted with the next epoch. No producer receives that epoch."""
        # KIP-98: the markers with this epoch fence the producer in every partition that it has
        # written to.
        bumped = min(self.producer_epoch + 1, MAX_EPOCH)
        return self.with_outcome(False, wall_ms)._replace(producer_epoch=bumped)

    def with_all_markers(self, wall_ms: int) -> Transaction:
        """Return the transaction after every partition has received a marker."""
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
        # Kafka writes null, not an empty list, if no transaction has begun.
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
    """Return the state of a transactional id that has a new owner and no transaction."""
    status, partitions = TransactionStatus.Empty, frozenset[TopicPartition]()
    return Transaction(transactional_id, *owner, timeout_ms, status, partitions, wall_ms, NOT_BEGUN)


def transaction_of(key: TransactionKey, value: TransactionValue) -> Transaction:
    """Restore the transaction from its record.

    Raises CorruptData if the record is not one that a coordinator writes.
    """
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
