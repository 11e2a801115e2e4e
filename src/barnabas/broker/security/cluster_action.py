"""Checks requests that are sent by brokers or the controller.

The sender must be a broker of this cluster, and the request must be intended for this broker's
current registration.

A standalone broker rejects all these requests, because its controller reaches it without a
connection.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from barnabas.broker.listener_names import (
    control_plane_listener,
    inter_broker_listener,
)
from barnabas.cluster.image import TopicImage
from barnabas.cluster.loading import load_configs_of, load_topic_ids
from barnabas.cluster.store import MetadataError
from barnabas.errors import BrokerNotAvailable, ClusterAuthorizationFailed, StaleBrokerEpoch
from barnabas.security.acl import CLUSTER_NAME
from barnabas.types import NO_TOPIC_ID

if TYPE_CHECKING:
    from barnabas.broker.context import Context
    from barnabas.protocol.messages.leader_and_isr import LeaderAndIsrTopicState
    from barnabas.protocol.messages.update_metadata import UpdateMetadataTopicState

_ANY_EPOCH = -1


def is_broker(context: Context) -> bool:
    """Return whether the client may act as a broker or as the controller of this cluster.

    The rules must allow it, and the client must be connected to a listener that brokers use.
    """
    return (
        context.node.view.has_peers
        and _comes_by_their_listener(context)
        and context.is_allowed(CLUSTER_NAME)
    )


def _comes_by_their_listener(context: Context) -> bool:
    # If brokers use their own listener, do not accept them on the client listener, because many
    # clients may have access to that listener.
    config = context.node.config
    theirs = (inter_broker_listener(config)[0], control_plane_listener(config))
    return context.client.listener in theirs


def check_order(context: Context, broker_epoch: int) -> None:
    """Check that a request from a controller applies to this broker.

    `broker_epoch` identifies the registration that the request is intended for. An epoch higher
    than this broker's own is accepted, because the controller may learn of a registration before
    the broker itself does. Raises ClusterAuthorizationFailed or StaleBrokerEpoch.
    """
    node = context.node
    if not is_broker(context):
        raise ClusterAuthorizationFailed(
            f"only brokers of this cluster may send {context.api.name}"
        )
    # KIP-380: the request was intended for an earlier registration of this broker.
    if broker_epoch != _ANY_EPOCH and broker_epoch < node.view.broker_epoch:
        raise StaleBrokerEpoch(
            f"{context.api.name} is meant for broker {node.broker_id} in epoch {broker_epoch}; "
            f"it has since re-registered in epoch {node.view.broker_epoch}"
        )


async def check_order_once_registered(context: Context, broker_epoch: int) -> None:
    """Wait until this broker knows its own epoch, and then call `check_order`.

    Requests can arrive before that. A request for the previous registration must be rejected, while
    a request for the current registration must not be rejected.
    """
    await context.node.view.until_registered()
    check_order(context, broker_epoch)


async def configs_of(
    context: Context, topics: Mapping[str, bytes]
) -> Mapping[str, Mapping[str, str]]:
    """Return the configs of these topics, which requests from the controller do not contain.

    `topics` maps names to ids. If the broker knows a different topic by one of the names, that
    topic is omitted. Raises BrokerNotAvailable if the metadata store cannot be read. In that case,
    the request is not answered, so the controller sends it again.
    """
    configs: dict[str, Mapping[str, str]] = {}
    unknown = []
    for name, topic_id in topics.items():
        known = context.node.image.topics.get(name)
        # These configs may belong to an earlier topic with the same name. They must then not be
        # used.
        if known is not None and known.topic_id == topic_id:
            configs[name] = known.config
        else:
            unknown.append(name)
    if unknown:
        try:
            configs.update(await load_configs_of(context.node.store, unknown))
        except MetadataError as error:
            raise BrokerNotAvailable(f"cannot read the configs of topics: {error}") from error
    return configs


async def add_topic_ids(
    context: Context, topics: Sequence[LeaderAndIsrTopicState | UpdateMetadataTopicState]
) -> None:
    """Add the ids to a request in a version that has none (IBP 2.7 and below).

    A topic may have an id all the same, because a controller with a newer IBP has assigned one. If
    an old tool has removed it from the topic's node, the topic keeps the id in the image. Raises
    the same errors as `configs_of`.
    """
    try:
        ids = await load_topic_ids(context.node.store, [each.topic_name for each in topics])
    except MetadataError as error:
        raise BrokerNotAvailable(f"cannot read the ids of topics: {error}") from error
    for each in topics:
        known = context.node.image.topics.get(each.topic_name)
        known_id = NO_TOPIC_ID if known is None else known.topic_id
        each.topic_id = ids.get(each.topic_name, known_id)


async def missed_deletions(
    context: Context, controller_epoch: int, broker_epoch: int
) -> Mapping[str, TopicImage]:
    """Return the topics in the image that were deleted while this broker could not be notified.

    If the broker has already checked this for this controller and registration, the result is
    empty.

    Raises the same errors as `configs_of`.
    """
    try:
        return await context.node.deleted_topics.find(controller_epoch, broker_epoch)
    except MetadataError as error:
        raise BrokerNotAvailable(f"cannot read the list of topics: {error}") from error
