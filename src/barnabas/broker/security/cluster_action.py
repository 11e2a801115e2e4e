"""What brokers ask of each other, and the controller of brokers: who may, and for whom it is meant.

A broker without peers obeys nobody: what a controller says to its own broker never travels.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from barnabas.broker.context import Context
from barnabas.broker.security.authorization import CLUSTER_NAME
from barnabas.cluster.image import TopicImage
from barnabas.cluster.store import MetadataError
from barnabas.errors import BrokerNotAvailable, ClusterAuthorizationFailed, StaleBrokerEpoch

_ANY_EPOCH = -1


def is_broker(context: Context) -> bool:
    """Whether the caller may act as a broker of this cluster, or as its controller."""
    return context.node.view.has_peers and context.allowed(CLUSTER_NAME)


def check_order(context: Context, broker_epoch: int) -> None:
    """May this be carried out here? `broker_epoch`: the registration for which it is meant.

    A higher one than our own is right: the controller may have seen our registration before we
    have. Raises ClusterAuthorizationFailed, StaleBrokerEpoch.
    """
    node = context.node
    if not is_broker(context):
        raise ClusterAuthorizationFailed(
            f"only brokers of this cluster may send {context.api.name}"
        )
    if broker_epoch != _ANY_EPOCH and broker_epoch < node.view.broker_epoch:
        raise StaleBrokerEpoch(
            f"{context.api.name} is meant for broker {node.broker_id} in epoch {broker_epoch}; it "
            f"has registered again since, in epoch {node.view.broker_epoch}"
        )


async def check_order_once_registered(context: Context, broker_epoch: int) -> None:
    """As `check_order`, when this broker knows its own epoch.

    It can be reached before: what was meant for its former life must not pass then, and what is
    meant for this one would be lost if it were refused.
    """
    await context.node.view.until_registered()
    check_order(context, broker_epoch)


async def configs_of(context: Context, topics: Iterable[str]) -> Mapping[str, Mapping[str, str]]:
    """What the topics' own configs set, which the controller's requests do not carry.

    Raises BrokerNotAvailable if the metadata store cannot say: the request is not to be answered
    then, so that the controller sends it again.
    """
    try:
        return await context.node.topic_configs(topics)
    except MetadataError as error:
        raise BrokerNotAvailable(f"cannot read the configs of topics: {error}") from error


async def gone_under(context: Context, controller_epoch: int) -> Mapping[str, TopicImage]:
    """The topics that are gone, and of which this controller need not know that they were there.

    Raises as `configs_of` does.
    """
    try:
        return await context.node.gone_topics.under(controller_epoch)
    except MetadataError as error:
        raise BrokerNotAvailable(f"cannot read the list of topics: {error}") from error
