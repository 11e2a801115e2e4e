"""AlterPartition (key 56): receive the ISRs that leaders on other brokers propose (RE-9)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from barnabas.broker.context import Context
from barnabas.broker.inter_broker.alter_partition_wire import (
    has_omissions,
    isr_response,
    proposals_of,
)
from barnabas.broker.outcome import Outcome
from barnabas.broker.security.cluster_action import is_broker
from barnabas.errors import ClusterAuthorizationFailed, KafkaError, StaleBrokerEpoch
from barnabas.protocol.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
)

if TYPE_CHECKING:
    from barnabas.broker.controller.runner import ControllerRunner

_RETRY_S = 0.1


def handle(context: Context, request: AlterPartitionRequest) -> Outcome:
    if not is_broker(context):
        return AlterPartitionResponse(error_code=ClusterAuthorizationFailed.code)
    return alter(context.node.controller, request, context.version)


async def alter(
    controller: ControllerRunner, request: AlterPartitionRequest, version: int
) -> AlterPartitionResponse:
    """Return the controller's response, or the error if the whole request is rejected."""
    try:
        image = controller.image
        sender = image.brokers.get(request.broker_id)
        # Reject a proposal that was made before its sender restarted (KIP-497). The sender compared
        # its followers with its log, and that log may have been truncated since then.
        if sender is None or sender.epoch != request.broker_epoch:
            return AlterPartitionResponse(error_code=StaleBrokerEpoch.code)
        proposals = proposals_of(request, version, image)
        answers = await controller.alter_partitions(
            request.broker_id, request.broker_epoch, proposals
        )
    except KafkaError as error:
        return AlterPartitionResponse(error_code=error.code)
    response = isr_response(request, version, image, answers)
    if has_omissions(request, response):
        # An old leader sends the rest again at once, and only one request at a time.
        await asyncio.sleep(_RETRY_S)
    return response
