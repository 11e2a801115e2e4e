"""AddPartitionsToTxn (key 24): add partitions to a transaction (PR-7).

Either all partitions are added or none. If a partition is unknown or not authorized, the other
partitions fail with OPERATION_NOT_ATTEMPTED. From version 4 on, brokers also send this request, in
order to verify a producer's batches (KIP-890). Their requests can contain several transactions, and
each transaction gets its own result.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import partial
from typing import cast

from barnabas.broker.context import Context
from barnabas.broker.coordinator.pending_reply import ShardOutcome, join_outcomes
from barnabas.broker.outcome import Outcome
from barnabas.broker.pieces import Lists, in_pieces
from barnabas.cluster.layout import INTERNAL_TOPICS
from barnabas.coordinator.transaction_answers import add_failed, add_result, partitions_of
from barnabas.errors import (
    ClusterAuthorizationFailed,
    InvalidRequest,
    KafkaError,
    OperationNotAttempted,
    TopicAuthorizationFailed,
    TransactionalIdAuthorizationFailed,
    UnknownTopicOrPartition,
)
from barnabas.protocol.message import Message
from barnabas.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTransaction,
)
from barnabas.security.acl import CLUSTER_NAME, Operation, ResourceType
from barnabas.types import TopicPartition

_BROKERS = 4  # the first version that brokers send


_LISTS_OF_CLIENT = Lists(
    ("v3_and_below_topics", "partitions"),
    ("results_by_topic_v3_and_below", "results_by_partition"),
)
_LISTS = Lists(
    ("transactions", "topics", "partitions"),
    ("results_by_transaction", "topic_results", "results_by_partition"),
)
_AT_ONCE = 2_000
"""The maximum number of partitions in a request for each transaction."""


def handle(context: Context, request: AddPartitionsToTxnRequest) -> Outcome:
    lists = _LISTS if context.version >= _BROKERS else _LISTS_OF_CLIENT
    return in_pieces(context, request, lists, _handle, _AT_ONCE)


def _handle(context: Context, request: AddPartitionsToTxnRequest) -> Outcome:
    if context.version < _BROKERS:
        # Up to version 3, the fields of a single transaction are at the top level. Convert them
        # to a list with one element, as brokers send it.
        one = AddPartitionsToTxnTransaction(
            transactional_id=request.v3_and_below_transactional_id,
            producer_id=request.v3_and_below_producer_id,
            producer_epoch=request.v3_and_below_producer_epoch,
            topics=request.v3_and_below_topics,
        )
        return join_outcomes([_add(context, one)], _answer_client)
    if not context.allowed_to(Operation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME):
        return AddPartitionsToTxnResponse(error_code=ClusterAuthorizationFailed.code)
    return join_outcomes([_add(context, each) for each in request.transactions], _answer_broker)


def _answer_client(results: list[Message]) -> AddPartitionsToTxnResponse:
    (result,) = cast(list[AddPartitionsToTxnResult], results)
    return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=result.topic_results)


def _answer_broker(results: list[Message]) -> AddPartitionsToTxnResponse:
    return AddPartitionsToTxnResponse(
        results_by_transaction=cast(list[AddPartitionsToTxnResult], results)
    )


def _add(context: Context, transaction: AddPartitionsToTxnTransaction) -> ShardOutcome:
    name, version = transaction.transactional_id, context.version
    fail = partial(add_failed, transaction, version=version)
    try:
        # From version 4 on, CLUSTER_ACTION is sufficient, because the broker that sends the request
        # authorized the producer when its batch arrived.
        if version < _BROKERS and not context.is_allowed(name):
            raise TransactionalIdAuthorizationFailed
        partitions = partitions_of(transaction.topics)
        # Check the coordinator first. Without metadata, this broker knows no topics and is not a
        # coordinator.
        shard = context.node.transactions.shard_of(name) if name else None
        forbidden = _forbidden(context, partitions)
        refused = {one: code for one in partitions if (code := _refusal(context, one, forbidden))}
        if refused:
            return add_result(transaction, lambda one: refused.get(one, OperationNotAttempted.code))
        if shard is None:
            raise InvalidRequest
    except KafkaError as error:
        return fail(error)
    # KIP-890: this is only a query of the state in memory. Nothing is written, so the response does
    # not wait for replicas.
    if transaction.verify_only:
        codes = shard.machine.verify(
            name, transaction.producer_id, transaction.producer_epoch, partitions
        )
        return add_result(transaction, codes.__getitem__)
    return shard.ask(
        lambda machine, ticket, now: machine.add_partitions(ticket, transaction, version, now),
        fail,
    )


def _forbidden(context: Context, partitions: Iterable[TopicPartition]) -> set[str]:
    """Return the topics that the client may not write to. If the client is a broker, the result is
    empty.
    """
    if context.version >= _BROKERS:
        return set()
    return {
        name
        for name, times in Counter(one.topic for one in partitions).items()
        # Like Kafka, reject internal topics, because clients cannot write to them in a transaction.
        if name in INTERNAL_TOPICS
        or not context.allowed_to(Operation.WRITE, ResourceType.TOPIC, name, times)
    }


def _refusal(context: Context, topic_partition: TopicPartition, forbidden: set[str]) -> int:
    """Return the error code if the client may not add the partition to a transaction, and 0
    otherwise.
    """
    name, partition = topic_partition
    if name in forbidden:
        return TopicAuthorizationFailed.code
    topic = context.node.image.topics.get(name)
    if topic is None or partition not in topic.partitions:
        return UnknownTopicOrPartition.code
    return 0
