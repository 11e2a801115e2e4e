"""Whether a transactional write belongs to an open transaction (KIP-890, part 1).

A batch that arrives when its transaction has been ended would begin another one, which nobody ever
ends: readers of committed records would wait for good. So the first batch of a producer in a
partition is appended only if the transaction's coordinator knows of the partition; for those after
it the log itself is the proof. Nothing is awaited between the question and the append, so no marker
can come between the two.

`transaction.partition.verification.enable=false` switches it off.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.authorization import Operation, ResourceType
from barnabas.coordinator.decision import TransactionalBatch
from barnabas.errors import (
    NONE,
    ConcurrentTransactions,
    CoordinatorLoadInProgress,
    CoordinatorNotAvailable,
    CorruptData,
    InvalidProducerEpoch,
    InvalidTxnState,
    NotCoordinator,
    NotEnoughReplicas,
    ProducerFenced,
    TransactionAbortable,
    TransactionalIdAuthorizationFailed,
    error_for_code,
)
from barnabas.records.batch import read_header
from barnabas.storage.producers import NO_OFFSET

if TYPE_CHECKING:
    from barnabas.broker.context import Context, Node
    from barnabas.broker.replica import Replica

_KNOW_ABORTABLE = 11  # the first version of Produce that may answer TRANSACTION_ABORTABLE

# What the coordinator may have overcome when the producer tries again.
_PASSING = (
    ConcurrentTransactions,
    CoordinatorLoadInProgress,
    CoordinatorNotAvailable,
    NotCoordinator,
)


def check_produced(
    context: Context, replica: Replica, transactional_id: str | None, records: memoryview
) -> None:
    """Whether a producer's transactional batch may be appended now; raises what it is to be told.

    To be asked right before the append.
    """
    if transactional_id is None or not context.allowed_to(
        Operation.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_id
    ):
        raise TransactionalIdAuthorizationFailed
    try:
        header = read_header(records)
    except CorruptData:
        return  # the append says so, in its own words
    batch = TransactionalBatch(transactional_id, header.producer_id, header.producer_epoch)
    check_open(context.node, replica, batch, knows_abortable=context.version >= _KNOW_ABORTABLE)


def check_open(
    node: Node, replica: Replica, batch: TransactionalBatch, *, knows_abortable: bool
) -> None:
    """Whether the producer has a transaction open in this partition, or its coordinator expects it
    to begin one there; raises what the producer is to be told.

    `knows_abortable`: it understands TRANSACTION_ABORTABLE, and gets INVALID_TXN_STATE else. What
    passes is told as NOT_ENOUGH_REPLICAS, which every producer takes for a reason to try again.
    """
    if not node.config.bool("transaction.partition.verification.enable"):
        return
    name, producer_id, producer_epoch = batch
    known = replica.log.producers.get(producer_id)
    if (
        known is not None
        and known.epoch == producer_epoch
        and known.transaction_offset != NO_OFFSET
    ):
        return
    try:
        # A coordinator on another broker would be asked here, by AddPartitionsToTxn.
        machine = node.transactions.shard_of(name).machine
        topic_partition = replica.topic_partition
        codes = machine.verify(name, producer_id, producer_epoch, [topic_partition])
        if codes[topic_partition] != NONE:
            raise error_for_code(codes[topic_partition])
    except _PASSING as error:
        raise NotEnoughReplicas(
            f"{replica.topic_partition}: cannot tell yet whether it is in the transaction: {error}"
        ) from error
    except ProducerFenced as error:
        raise InvalidProducerEpoch(str(error)) from error
    except TransactionAbortable as error:
        message = f"{replica.topic_partition} was not added to the transaction"
        raise (TransactionAbortable if knows_abortable else InvalidTxnState)(message) from error
