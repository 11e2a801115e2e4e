"""Builds transaction responses for producers and admin clients.

The error PRODUCER_FENCED was added in later versions of the APIs. In earlier versions,
INVALID_PRODUCER_EPOCH is sent instead (KIP-588).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from barnabas.coordinator.records import TransactionStatus
from barnabas.coordinator.transaction import Transaction
from barnabas.errors import (
    NONE,
    InvalidCommitOffsetSize,
    InvalidProducerEpoch,
    KafkaError,
    ProducerFenced,
    UnknownServerError,
)
from barnabas.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnResponse
from barnabas.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)
from barnabas.protocol.messages.describe_transactions import TopicData, TransactionState
from barnabas.protocol.messages.end_txn import EndTxnResponse
from barnabas.protocol.messages.init_producer_id import InitProducerIdResponse
from barnabas.protocol.messages.list_transactions import ListTransactionsResponse
from barnabas.types import TopicPartition, by_topic

# The first versions that have the error PRODUCER_FENCED.
_INIT_FENCED, _OTHERS_FENCED = 4, 2


def _code(error: KafkaError, version: int, fenced_from: int) -> int:
    # KIP-588: older clients recognise only INVALID_PRODUCER_EPOCH.
    if isinstance(error, ProducerFenced) and version < fenced_from:
        return InvalidProducerEpoch.code
    if isinstance(error, InvalidCommitOffsetSize):
        # If a transaction has too many partitions, its record is too large. Kafka has no error for
        # this case.
        return UnknownServerError.code
    return error.code


def init_failed(error: KafkaError, version: int) -> InitProducerIdResponse:
    code = _code(error, version, _INIT_FENCED)
    return InitProducerIdResponse(error_code=code, producer_id=-1, producer_epoch=-1)


def end_failed(error: KafkaError, version: int) -> EndTxnResponse:
    return EndTxnResponse(error_code=_code(error, version, _OTHERS_FENCED))


def add_offsets_failed(error: KafkaError, version: int) -> AddOffsetsToTxnResponse:
    return AddOffsetsToTxnResponse(error_code=_code(error, version, _OTHERS_FENCED))


def partitions_of(topics: Iterable[AddPartitionsToTxnTopic]) -> frozenset[TopicPartition]:
    return frozenset(
        TopicPartition(topic.name, partition) for topic in topics for partition in topic.partitions
    )


def add_succeeded(transaction: AddPartitionsToTxnTransaction) -> AddPartitionsToTxnResult:
    return add_result(transaction, lambda _: NONE)


def add_failed(
    transaction: AddPartitionsToTxnTransaction, error: KafkaError, version: int
) -> AddPartitionsToTxnResult:
    code = _code(error, version, _OTHERS_FENCED)
    return add_result(transaction, lambda _: code)


def add_result(
    transaction: AddPartitionsToTxnTransaction, code_of: Callable[[TopicPartition], int]
) -> AddPartitionsToTxnResult:
    """Build the response for one transaction, with an error code for each partition."""
    return AddPartitionsToTxnResult(
        transactional_id=transaction.transactional_id,
        topic_results=[
            AddPartitionsToTxnTopicResult(
                name=topic.name,
                results_by_partition=[
                    AddPartitionsToTxnPartitionResult(
                        partition_index=partition,
                        partition_error_code=code_of(TopicPartition(topic.name, partition)),
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in transaction.topics
        ],
    )


def description(transaction: Transaction) -> TransactionState:
    topics = by_topic(sorted(transaction.partitions))
    return TransactionState(
        transactional_id=transaction.transactional_id,
        transaction_state=transaction.status.name,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_start_time_ms=transaction.begun_ms,
        producer_id=transaction.producer_id,
        producer_epoch=transaction.producer_epoch,
        topics=[
            TopicData(topic=topic, partitions=partitions) for topic, partitions in topics.items()
        ],
    )


def describe_failed(transactional_id: str, error: KafkaError) -> TransactionState:
    return TransactionState(transactional_id=transactional_id, error_code=error.code)


def list_failed(error: KafkaError) -> ListTransactionsResponse:
    return ListTransactionsResponse(error_code=error.code)


def listed_together(
    parts: Sequence[ListTransactionsResponse], state_filters: Sequence[str]
) -> ListTransactionsResponse:
    """Merge the responses of all partitions into one, and list the filter's unknown states."""
    names = TransactionStatus.__members__
    for part in parts:
        if part.error_code:
            return part
    return ListTransactionsResponse(
        unknown_state_filters=[name for name in dict.fromkeys(state_filters) if name not in names],
        transaction_states=[state for part in parts for state in part.transaction_states],
    )
