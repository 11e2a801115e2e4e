"""TxnOffsetCommit (key 28): commit a group's offsets as part of a transaction (KIP-98).

The offsets remain pending in the group's partition of `__consumer_offsets` until the transaction's
marker is written there. That partition must be part of the transaction, because otherwise the
marker would never be written (KIP-890).
"""

from __future__ import annotations

from typing import cast

from barnabas.broker.context import Context
from barnabas.broker.coordinator.offset_topics import Refused, add_refused, screen
from barnabas.broker.coordinator.pending_reply import (
    ShardOutcome,
    as_coordinator,
    join_outcomes,
    settle,
)
from barnabas.broker.coordinator.verifier import Unverified
from barnabas.broker.outcome import Hold, Outcome
from barnabas.broker.pieces import Lists, in_pieces
from barnabas.cluster.layout import GROUP_TOPIC
from barnabas.coordinator.decision import TransactionalBatch
from barnabas.coordinator.offset_answers import transactional_answer
from barnabas.errors import (
    CoordinatorLoadInProgress,
    CoordinatorNotAvailable,
    GroupAuthorizationFailed,
    KafkaError,
    TransactionalIdAuthorizationFailed,
)
from barnabas.protocol.message import Message
from barnabas.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitPartitionResponse,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitTopicResponse,
)
from barnabas.security.acl import Operation, ResourceType
from barnabas.types import TopicPartition

_KNOWS_LOADING = 2
_KNOWS_ABORTABLE = 4


_LISTS = Lists(("topics", "partitions"), ("topics", "partitions"))


def handle(context: Context, request: TxnOffsetCommitRequest) -> Outcome:
    return in_pieces(context, request, _LISTS, _handle)


def _handle(context: Context, request: TxnOffsetCommitRequest) -> Outcome:
    if not context.is_allowed(request.transactional_id):
        return transactional_answer(request, TransactionalIdAuthorizationFailed)
    if not context.allowed_to(Operation.READ, ResourceType.GROUP, request.group_id):
        return transactional_answer(request, GroupAuthorizationFailed)
    request.topics, refused = screen(context, request.topics)
    # KIP-890: only the transaction coordinator knows whether the transaction includes the
    # group's partition.
    batches = _to_be_verified(context, request)
    if batches:
        return Hold(_commit_verified(context, request, refused, batches))
    return _commit_allowed(context, request, refused)


def _commit_allowed(
    context: Context, request: TxnOffsetCommitRequest, refused: Refused
) -> ShardOutcome:
    if not refused:
        return _commit(context, request)
    outcome = _commit(context, request) if request.topics else TxnOffsetCommitResponse()
    return join_outcomes([outcome], lambda answers: _complete(answers, refused))


def _to_be_verified(context: Context, request: TxnOffsetCommitRequest) -> list[Unverified]:
    """Return the batch that must be verified by a transaction coordinator on another broker, if
    there is one.
    """
    node = context.node
    if not node.verification.may_wait or not request.topics:
        return []
    try:
        partition = TopicPartition(GROUP_TOPIC, node.groups.partition_of(request.group_id))
    except KafkaError:
        return []  # the commit fails with its own error
    return node.verification.unverified_batches([Unverified(partition, _batch(request))])


async def _commit_verified(
    context: Context, request: TxnOffsetCommitRequest, refused: Refused, batches: list[Unverified]
) -> Message:
    await context.node.verification.verify(batches)
    return await settle(_commit_allowed(context, request, refused), context.node.replicas)


def _batch(request: TxnOffsetCommitRequest) -> TransactionalBatch:
    return TransactionalBatch(request.transactional_id, request.producer_id, request.producer_epoch)


def _commit(context: Context, request: TxnOffsetCommitRequest) -> ShardOutcome:
    is_old = context.version < _KNOWS_LOADING

    def failure(error: KafkaError) -> TxnOffsetCommitResponse:
        if is_old and isinstance(error, CoordinatorLoadInProgress):
            error = CoordinatorNotAvailable()  # the loading error is fatal to old producers
        return transactional_answer(request, error)

    try:
        shard = context.node.groups.shard_of(request.group_id)
    except KafkaError as error:
        return failure(error)
    try:
        context.node.verification.check_open(
            context.node.replicas.leader_of(shard.replica.topic_partition),
            _batch(request),
            knows_abortable=context.version >= _KNOWS_ABORTABLE,
        )
    except KafkaError as error:
        # The error concerns the group's partition, but the producer expects a coordinator error.
        return failure(as_coordinator(error))
    return shard.ask(
        lambda machine, ticket, now: machine.commit_transactional(ticket, request, now.wall_ms),
        failure,
    )


def _complete(answers: list[Message], refused: Refused) -> TxnOffsetCommitResponse:
    answer = cast(TxnOffsetCommitResponse, answers[0])
    add_refused(
        answer.topics, refused, TxnOffsetCommitTopicResponse, TxnOffsetCommitPartitionResponse
    )
    return answer
