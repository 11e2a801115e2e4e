"""Checks requests from brokers or the controller.

The sender must be a broker of the cluster, and the request must be meant for this registration.

A standalone broker rejects them all, because a controller needs no connection to its own broker.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from barnabas.broker.listener_names import (
    control_plane_listener,
    inter_broker_listener,
)
from barnabas.cluster.image import TopicImage
from barnabas.cluster.loading import load_configs_of
from barnabas.cluster.store import MetadataError
from barnabas.errors import BrokerNotAvailable, ClusterAuthorizationFailed, StaleBrokerEpoch
from barnabas.security.acl import CLUSTER_NAME

if TYPE_CHECKING:
    from barnabas.broker.context import Context

_ANY_EPOCH = -1


def is_broker(context: Context) -> bool:
    """Return whether the client may act as a broker or the controller of this cluster.

    The rules must allow this, and the client must be connected to a listener for brokers.
    """
    return (
        context.node.view.has_peers
        and _comes_by_their_listener(context)
        and context.is_allowed(CLUSTER_NAME)
    )


def _comes_by_their_listener(context: Context) -> bool:
    # If brokers use a separate listener, do not accept them on the client listener, which may be
    # widely accessible.
    config = context.node.config
    theirs = (inter_broker_listener(config)[0], control_plane_listener(config))
    return context.client.listener in theirs


def check_order(context: Context, broker_epoch: int) -> None:
    """Check that a controller's request is valid for this broker.

    `broker_epoch` identifies the registration for which the request is meant. An epoch higher than
    this broker's own is accepted: the controller may learn of a registration before the broker
    does. Raises ClusterAuthorizationFailed or StaleBrokerEpoch.
    """
    node = context.node
    if not is_broker(context):
        raise ClusterAuthorizationFailed(
            f"only brokers of this cluster may send {context.api.name}"
        )
    # KIP-380: the request was meant for this broker's previous registration.
    if broker_epoch != _ANY_EPOCH and broker_epoch < node.view.broker_epoch:
        raise StaleBrokerEpoch(
            f"{context.api.name} is meant for broker {node.broker_id} in epoch {broker_epoch}; "
            f"it has since re-registered in epoch {node.view.broker_epoch}"
        )


async def check_order_once_registered(context: Context, broker_epoch: int) -> None:
    """Wait until this broker knows its own epoch, then `check_order`.

    Requests can arrive earlier: a request for the previous registration must be rejected, and a
    request for this one must not be.
    """
    await context.node.view.until_registered()
    check_order(context, broker_epoch)


async def configs_of(
    context: Context, topics: Mapping[str, bytes]
) -> Mapping[str, Mapping[str, str]]:
    """Return the topic configs, which controller requests do not contain.

    `topics` maps names to ids. A topic is omitted if the broker knows another topic by that name.
    Raises BrokerNotAvailable if the metadata store cannot be read; the request then gets no
    response, so the controller resends it.
    """
    configs: dict[str, Mapping[str, str]] = {}
    unknown = []
    for name, topic_id in topics.items():
        known = context.node.image.topics.get(name)
        # An earlier topic may have had this name; do not use its configs.
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


async def missed_deletions(
    context: Context, controller_epoch: int, broker_epoch: int
) -> Mapping[str, TopicImage]:
    """Return the topics in the image that were deleted while this broker could not be notified.

    There are none if the broker has already checked this for this controller and registration.

    Raises like `configs_of`.
    """
    try:
        return await context.node.deleted_topics.find(controller_epoch, broker_epoch)
    except MetadataError as error:
        raise BrokerNotAvailable(f"cannot read the list of topics: {error}") from error
