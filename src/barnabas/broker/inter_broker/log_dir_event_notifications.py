"""Notifies a controller on another broker that a log directory of this broker has failed (KIP-112).

    /log_dir_event_notification/log_dir_event_0000000007        {"version":1,"broker":2,"event":1}

The node contains only the broker id. The controller removes the node and sends that broker all of
its hosted partitions again. For each partition that it has lost, the broker responds with
KAFKA_STORAGE_ERROR.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Container
from contextlib import suppress

from barnabas.cluster.controller_requests import LeaderAndIsr, PartitionState
from barnabas.cluster.image import ClusterImage
from barnabas.cluster.layout import CONTROLLER_EPOCH
from barnabas.cluster.loading import children
from barnabas.cluster.store import Check, Create, Delete, MetadataStore, NoNode
from barnabas.controller.controller import Send
from barnabas.types import TopicPartition

_log = logging.getLogger(__name__)

PATH = "/log_dir_event_notification"

_PREFIX = f"{PATH}/log_dir_event_"
_FAILURE = 1


async def announce(store: MetadataStore, broker_id: int) -> None:
    """Announce that this broker has lost one of its log directories. Raises MetadataError."""
    node = {"version": 1, "broker": broker_id, "event": _FAILURE}
    data = json.dumps(node, separators=(",", ":")).encode()
    await store.commit([Create(_PREFIX, data, sequential=True)])


async def take(store: MetadataStore, epoch_version: int) -> list[int]:
    """Return all brokers that have announced a failure, and remove their nodes.

    `epoch_version` prevents a controller that has been deposed from removing nodes.
    """
    broker_ids: dict[int, None] = {}
    for name in await children(store, PATH):
        path = f"{PATH}/{name}"
        node = await store.read(path)
        if node is None:
            continue
        try:
            broker_ids[int(json.loads(node.data or b"")["broker"])] = None
        except (ValueError, KeyError, TypeError) as error:
            _log.error("ignoring malformed %s (%r): %r", path, error, node.data)
        # Remove the node even if it is invalid, because otherwise it would be read again in every
        # round.
        with suppress(NoNode):
            await store.commit([Check(CONTROLLER_EPOCH, epoch_version), Delete(path)])
    return list(broker_ids)


def everything_hosted(image: ClusterImage, broker_id: int, but_not: Container[str] = ()) -> Send:
    """Return all partitions that have a replica on a broker, with their current state.

    `but_not` contains the topics that are being deleted. If they were included, the broker would
    recreate replicas that it has just deleted.
    """
    states = tuple(
        PartitionState(
            TopicPartition(topic.name, number), topic.topic_id, partition, topic.config, False
        )
        for topic in image.topics.values()
        if topic.name not in but_not
        for number, partition in topic.partitions.items()
        if broker_id in partition.replicas
    )
    return Send(broker_id, LeaderAndIsr(image.controller_id, image.controller_epoch, states))
