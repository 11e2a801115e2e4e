"""UpdateMetadata (key 6): apply metadata from a controller on another broker."""

from __future__ import annotations

from barnabas.broker.context import Context
from barnabas.broker.inter_broker.update_metadata_wire import (
    HAS_TOPIC_IDS,
    update_metadata_topics,
    update_metadata_value,
)
from barnabas.broker.outcome import Hold, Outcome
from barnabas.broker.security.cluster_action import (
    add_topic_ids,
    check_order,
    check_order_once_registered,
    configs_of,
    missed_deletions,
)
from barnabas.errors import KafkaError
from barnabas.protocol.messages.update_metadata import (
    UpdateMetadataRequest,
    UpdateMetadataResponse,
)


def handle(context: Context, request: UpdateMetadataRequest) -> Outcome:
    try:
        check_order(context, request.broker_epoch)
    except KafkaError as error:
        return UpdateMetadataResponse(error_code=error.code)
    # The controller's next request must wait for this one.
    return Hold(_carry_out(context, request))


async def _carry_out(context: Context, request: UpdateMetadataRequest) -> UpdateMetadataResponse:
    try:
        await check_order_once_registered(context, request.broker_epoch)
    except KafkaError as error:
        return UpdateMetadataResponse(error_code=error.code)
    node = context.node
    if context.version < HAS_TOPIC_IDS:
        await add_topic_ids(context, request.topic_states)
    configs = await configs_of(context, update_metadata_topics(request))
    # The request lists only topics that exist, so look for topics that were deleted while this
    # broker could not be reached.
    gone = await missed_deletions(context, request.controller_epoch, request.broker_epoch)
    try:
        async with node.control.line:
            # There must be no await from here on, because the image must not change before it is
            # replaced.
            check_order(context, request.broker_epoch)
            value = update_metadata_value(request, context.version, node.image, configs)
            node.control.carry_out(value)
            node.dynamic_config.on_topics_known(topic.name for topic in value.topics)
        node.deleted_topics.forget(gone)
    except KafkaError as error:
        return UpdateMetadataResponse(error_code=error.code)
    return UpdateMetadataResponse()
