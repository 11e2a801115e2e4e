"""LeaderAndIsr (key 4): lead or follow partitions, as decided by a controller on another broker."""

from __future__ import annotations

from barnabas.broker.context import Context
from barnabas.broker.inter_broker.control_plane_wire import (
    HAS_TOPIC_IDS,
    in_pieces,
    leader_and_isr_response,
    leader_and_isr_topics,
    leader_and_isr_value,
)
from barnabas.broker.outcome import Hold, Outcome
from barnabas.broker.security.cluster_action import (
    add_topic_ids,
    check_order,
    check_order_once_registered,
    configs_of,
)
from barnabas.errors import KafkaError
from barnabas.protocol.messages.leader_and_isr import LeaderAndIsrRequest, LeaderAndIsrResponse
from barnabas.types import TopicPartition

_PARTITIONS_AT_ONCE = 1_000
"""The number of partitions that are created or removed before the disk is synced and the epoch is
checked again.
"""


def handle(context: Context, request: LeaderAndIsrRequest) -> Outcome:
    try:
        check_order(context, request.broker_epoch)
    except KafkaError as error:
        return LeaderAndIsrResponse(error_code=error.code)
    # The controller's next request must wait for this one.
    return Hold(_carry_out(context, request))


async def _carry_out(context: Context, request: LeaderAndIsrRequest) -> LeaderAndIsrResponse:
    try:
        await check_order_once_registered(context, request.broker_epoch)
    except KafkaError as error:
        return LeaderAndIsrResponse(error_code=error.code)
    node = context.node
    codes: dict[TopicPartition, int] = {}
    if context.version < HAS_TOPIC_IDS:
        await add_topic_ids(context, request.topic_states)
    # The request contains no topic configs, and a new log must not start with the defaults.
    configs = await configs_of(context, leader_and_isr_topics(request))
    try:
        value = leader_and_isr_value(request, context.version, configs)
        # Process the partitions in batches, so that other connections are served between batches.
        # If this broker registers again in the meantime, drop the remaining partitions, because
        # they were meant for its previous registration.
        for piece in in_pieces(value, _PARTITIONS_AT_ONCE):
            check_order(context, request.broker_epoch)
            codes.update(await node.control.handle(piece))
    except KafkaError as error:
        return LeaderAndIsrResponse(error_code=error.code)
    return leader_and_isr_response(value, codes, context.version)
