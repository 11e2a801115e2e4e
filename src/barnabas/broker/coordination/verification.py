"""Whether a transactional write belongs to an open transaction (KIP-890, part 1).

A batch that arrives when its transaction has been ended would begin another one, which nobody ever
ends: readers of committed records would wait for good. So the first batch of a producer in a
partition is appended only if the transaction's coordinator knows of the partition; for those after
it the log itself is the proof. Nothing is awaited between the question and the append, so no marker
can come between the two.

`transaction.partition.verification.enable=false` switches it off.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from barnabas.broker.coordination.verifier import Unverified
from barnabas.broker.security.authorization import Operation, ResourceType
from barnabas.coordinator.decision import TransactionalBatch
from barnabas.errors import (
    NONE,
    ConcurrentTransactions,
    CoordinatorLoadInProgress,
    CoordinatorNotAvailable,
    CorruptData,
    InvalidProducerEpoch,
    InvalidTxnState,
    KafkaError,
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
    from barnabas.broker.partitions.replica import Replica
    from barnabas.types import TopicPartition

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
    if _is_open(replica, batch):
        return
    try:
        code = _asked(node, replica.topic_partition, batch)
        if code != NONE:
            raise error_for_code(code)
    except _PASSING as error:
        raise NotEnoughReplicas(
            f"{replica.topic_partition}: cannot tell yet whether it is in the transaction: {error}"
        ) from error
    except ProducerFenced as error:
        raise InvalidProducerEpoch(str(error)) from error
    except TransactionAbortable as error:
        message = f"{replica.topic_partition} was not added to the transaction"
        raise (TransactionAbortable if knows_abortable else InvalidTxnState)(message) from error


def _asked(node: Node, topic_partition: TopicPartition, batch: TransactionalBatch) -> int:
    """What the coordinator says of the write: the one here, or (asked before) the one elsewhere."""
    if node.verifier is not None and node.verifier.is_elsewhere(batch.transactional_id):
        return node.verifier.take(topic_partition, batch)
    machine = node.transactions.shard_of(batch.transactional_id).machine
    return machine.verify(*batch, [topic_partition])[topic_partition]


async def verify(node: Node, batches: Iterable[Unverified]) -> None:
    """Have the coordinator asked about these; `check_open` finds what it said."""
    wanted = unverified(node, batches)
    if wanted and node.verifier is not None:
        await node.verifier.verify(wanted)


def unverified(node: Node, batches: Iterable[Unverified]) -> list[Unverified]:
    """Those about which a coordinator on another broker must be asked before the append."""
    verifier = node.verifier
    if verifier is None or not node.config.bool("transaction.partition.verification.enable"):
        return []
    found = []
    for each in batches:
        if not verifier.is_elsewhere(each.batch.transactional_id):
            continue
        try:
            replica = node.replicas.leader_of(each.topic_partition)
        except KafkaError:
            continue  # the append says so, in its own words
        if not _is_open(replica, each.batch):
            found.append(each)
    return found


def batches_of(
    transactional_id: str, records: Iterable[tuple[TopicPartition, memoryview]]
) -> Iterator[Unverified]:
    """A producer's batches by what their headers say; whose cannot be read the append refuses."""
    for topic_partition, batch in records:
        try:
            header = read_header(batch)
        except CorruptData:
            continue
        said = TransactionalBatch(transactional_id, header.producer_id, header.producer_epoch)
        yield Unverified(topic_partition, said)


def _is_open(replica: Replica, batch: TransactionalBatch) -> bool:
    """Whether the log itself is the proof: the producer has a transaction open there."""
    known = replica.log.producers.get(batch.producer_id)
    return (
        known is not None
        and known.epoch == batch.producer_epoch
        and known.transaction_offset != NO_OFFSET
    )
