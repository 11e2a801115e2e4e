"""StopReplica (key 5): stop hosting partitions, as decided by a controller on another broker."""

from __future__ import annotations

from barnabas.broker.context import Context
from barnabas.broker.inter_broker.control_plane_wire import (
    in_pieces,
    stop_replica_response,
    stop_replica_values,
)
from barnabas.broker.outcome import Hold, Outcome
from barnabas.broker.security.cluster_action import check_order, check_order_once_registered
from barnabas.errors import KafkaError
from barnabas.protocol.messages.stop_replica import StopReplicaRequest, StopReplicaResponse
from barnabas.types import TopicPartition

_PARTITIONS_AT_ONCE = 1_000
"""The number of partitions that are created or removed before the disk is synced and the epoch is
checked again.
"""


def handle(context: Context, request: StopReplicaRequest) -> Outcome:
    try:
        check_order(context, request.broker_epoch)
    except KafkaError as error:
        return StopReplicaResponse(error_code=error.code)
    # The controller's next request must wait for this one.
    return Hold(_carry_out(context, request))


async def _carry_out(context: Context, request: StopReplicaRequest) -> StopReplicaResponse:
    try:
        await check_order_once_registered(context, request.broker_epoch)
    except KafkaError as error:
        return StopReplicaResponse(error_code=error.code)
    node = context.node
    values = stop_replica_values(request, context.version)
    codes: dict[TopicPartition, int] = {}
    try:
        for value in values:
            # As in LeaderAndIsr, this broker may re-register between two batches.
            for piece in in_pieces(value, _PARTITIONS_AT_ONCE):
                check_order(context, request.broker_epoch)
                codes.update(await node.control.handle(piece))
    except KafkaError as error:
        return StopReplicaResponse(error_code=error.code)
    return stop_replica_response(codes)
