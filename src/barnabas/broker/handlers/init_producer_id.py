"""InitProducerId (key 22): an id and an epoch for an idempotent producer (KIP-98).

Stage two only when a new block of ids has to be taken from the metadata store. A transactional id
needs the transaction coordinator, which is not there yet.
"""

from __future__ import annotations

from barnabas.broker.authorization import CLUSTER_NAME
from barnabas.broker.channel import Outcome
from barnabas.broker.context import Context
from barnabas.errors import (
    ClusterAuthorizationFailed,
    CoordinatorNotAvailable,
    InvalidRequest,
    KafkaError,
)
from barnabas.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)


def handle(context: Context, request: InitProducerIdRequest) -> Outcome:
    if request.transactional_id is not None:
        error = CoordinatorNotAvailable if request.transactional_id else InvalidRequest
        return _failed(error)
    if not context.allowed(CLUSTER_NAME):
        return _failed(ClusterAuthorizationFailed)
    producer_id = context.node.producer_ids.next()
    if producer_id is None:
        return _from_new_block(context)
    return _made(producer_id)


async def _from_new_block(context: Context) -> InitProducerIdResponse:
    return _made(await context.node.producer_ids.next_from_new_block())


def _made(producer_id: int) -> InitProducerIdResponse:
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)


def _failed(error: type[KafkaError]) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=error.code, producer_id=-1, producer_epoch=-1)
