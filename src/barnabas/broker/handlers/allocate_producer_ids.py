"""AllocateProducerIds (key 67): allocate a block of producer ids for another broker (KIP-730).

Only Kafka brokers in a mixed cluster send this request. Barnabas brokers take their blocks directly
from the metadata store.
"""

from __future__ import annotations

from barnabas.broker.context import Context
from barnabas.broker.outcome import Outcome
from barnabas.broker.security.cluster_action import is_broker
from barnabas.errors import (
    BrokerIdNotRegistered,
    ClusterAuthorizationFailed,
    KafkaError,
    StaleBrokerEpoch,
)
from barnabas.protocol.messages.allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)


def handle(context: Context, request: AllocateProducerIdsRequest) -> Outcome:
    if not is_broker(context):
        return AllocateProducerIdsResponse(error_code=ClusterAuthorizationFailed.code)
    return _allocate(context, request)


async def _allocate(
    context: Context, request: AllocateProducerIdsRequest
) -> AllocateProducerIdsResponse:
    controller = context.node.controller
    try:
        broker = controller.image.brokers.get(request.broker_id)
        if broker is None:
            raise BrokerIdNotRegistered
        # A response to the previous registration would not reach the broker, and a block of a
        # thousand ids would be lost.
        if broker.epoch != request.broker_epoch:
            raise StaleBrokerEpoch
        first, last = await controller.allocate_producer_id_block()
    except KafkaError as error:
        return AllocateProducerIdsResponse(error_code=error.code)
    return AllocateProducerIdsResponse(producer_id_start=first, producer_id_len=last - first + 1)
