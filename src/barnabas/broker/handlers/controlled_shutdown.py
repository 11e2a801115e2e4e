"""ControlledShutdown (key 7): move leaderships off a broker that is about to stop (RE-13)."""

from __future__ import annotations

from barnabas.broker.context import Context
from barnabas.broker.outcome import Outcome
from barnabas.broker.security.cluster_action import is_broker
from barnabas.errors import ClusterAuthorizationFailed, KafkaError
from barnabas.protocol.messages.controlled_shutdown import (
    ControlledShutdownRequest,
    ControlledShutdownResponse,
    RemainingPartition,
)


def handle(context: Context, request: ControlledShutdownRequest) -> Outcome:
    if not is_broker(context):
        return ControlledShutdownResponse(error_code=ClusterAuthorizationFailed.code)
    return _shut_down(context, request)


async def _shut_down(
    context: Context, request: ControlledShutdownRequest
) -> ControlledShutdownResponse:
    try:
        # The broker keeps leading the partitions that have no other in-sync replica. It retries up
        # to `controlled.shutdown.max.retries` times, and then stops anyway.
        remaining = await context.node.controller.controlled_shutdown(
            request.broker_id, request.broker_epoch
        )
    except KafkaError as error:
        return ControlledShutdownResponse(error_code=error.code)
    return ControlledShutdownResponse(
        remaining_partitions=[
            RemainingPartition(topic_name=name.topic, partition_index=name.partition)
            for name in remaining
        ]
    )
