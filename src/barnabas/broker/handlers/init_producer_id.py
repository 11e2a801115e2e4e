"""InitProducerId (key 22): assign an id and an epoch to an idempotent producer (KIP-98).

If the request has a transactional id, it is handled by the transaction coordinator, which fences
the previous producer (PR-7). Stage two is needed only when a new block of ids has to be fetched
from the metadata store.
"""

from __future__ import annotations

from barnabas.broker.context import Context
from barnabas.broker.coordinator.pending_reply import ShardOutcome, settle
from barnabas.broker.outcome import Outcome
from barnabas.errors import (
    ClusterAuthorizationFailed,
    InvalidRequest,
    KafkaError,
    TransactionalIdAuthorizationFailed,
)
from barnabas.protocol.message import Message
from barnabas.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from barnabas.security.acl import CLUSTER_NAME, Operation, ResourceType


def handle(context: Context, request: InitProducerIdRequest) -> Outcome:
    if request.transactional_id is not None:
        return _handle_transactional(context, request, request.transactional_id)
    if not _may_be_idempotent(context):
        return _failure(ClusterAuthorizationFailed())
    producer_id = context.node.producer_ids.next()
    if producer_id is None:
        return _from_new_block(context)
    return _made(producer_id)


def _may_be_idempotent(context: Context) -> bool:
    """Return whether the client may write to any topic.

    This implies permission for idempotent writes (KIP-679).
    """
    return context.may(
        Operation.IDEMPOTENT_WRITE, ResourceType.CLUSTER, CLUSTER_NAME
    ) or context.allowed_somewhere(Operation.WRITE, ResourceType.TOPIC)


async def _from_new_block(context: Context) -> InitProducerIdResponse:
    try:
        return _made(await context.node.producer_ids.next_from_new_block())
    except KafkaError as error:
        return _failure(error)


def _made(producer_id: int) -> InitProducerIdResponse:
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)


def _failure(error: KafkaError) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=error.code, producer_id=-1, producer_epoch=-1)


# --- transactional -------------------------------------------------------------------------------


def _handle_transactional(context: Context, request: InitProducerIdRequest, name: str) -> Outcome:
    from barnabas.coordinator.transaction_answers import init_failed

    node = context.node
    try:
        if not context.allowed_to(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, name):
            raise TransactionalIdAuthorizationFailed
        if not name:
            raise InvalidRequest
        spare_id = None
        # A new transactional id needs a producer id, and so does a transactional id whose epoch is
        # exhausted. Reserve the producer id before asking the machine, because the machine cannot
        # wait for a block.
        if node.transactions.shard_of(name).machine.needs_producer_id(name):
            spare_id = node.producer_ids.next()
            if spare_id is None:
                return _ask_with_new_block(context, request, name)
        return _ask(context, request, name, spare_id)
    except KafkaError as error:
        return init_failed(error, context.version)


async def _ask_with_new_block(
    context: Context, request: InitProducerIdRequest, name: str
) -> Message:
    from barnabas.coordinator.transaction_answers import init_failed

    try:
        spare_id = await context.node.producer_ids.next_from_new_block()
        outcome = _ask(context, request, name, spare_id)
    except KafkaError as error:
        return init_failed(error, context.version)
    return await settle(outcome, context.node.replicas)


def _ask(
    context: Context, request: InitProducerIdRequest, name: str, spare_id: int | None
) -> ShardOutcome:
    """Ask the coordinator. Raises KafkaError if this broker does not host it."""
    from barnabas.coordinator.transaction_answers import init_failed

    version = context.version
    shard = context.node.transactions.shard_of(name)
    return shard.ask(
        lambda machine, ticket, now: machine.init_producer_id(
            ticket, request, version, spare_id, now
        ),
        lambda error: init_failed(error, version),
    )
