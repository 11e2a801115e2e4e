"""Loads the metadata tree. A new controller loads all of it; later, only parts of it are loaded.

Nodes are read in bulk, because each request to a server takes a round trip.

A malformed node raises CorruptData with its path, except that malformed topic configs are ignored.
If creating or deleting a topic was interrupted, some nodes may be missing, which is not an error: a
partition without a state node is loaded as one that never had a leader, but with the epochs in its
log.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence

from barnabas.cluster import layout
from barnabas.cluster.image import NEVER_LED, BrokerImage, PartitionImage, TopicImage
from barnabas.cluster.layout import TopicNode
from barnabas.cluster.store import MetadataStore, Znode
from barnabas.errors import CorruptData
from barnabas.types import TopicPartition

_log = logging.getLogger(__name__)

LatestEpochOf = Callable[[TopicPartition], int]
"""Returns the newest leader epoch in a partition's log, or -1 if there is no log or no epoch."""


def no_log(topic_partition: TopicPartition) -> int:
    """Return the epoch of a partition that has no local log."""
    return NEVER_LED


async def load_brokers(store: MetadataStore) -> dict[int, BrokerImage]:
    """Load all brokers that are registered."""
    brokers = {}
    for name in await children(store, layout.BROKER_IDS):
        broker_id = int(name)
        node = await store.read(layout.broker_path(broker_id))
        if node is not None:  # otherwise, the node was removed between the reads
            brokers[broker_id] = layout.decode_broker(broker_id, node.data, node.czxid)
    return dict(sorted(brokers.items()))


async def images_of(
    store: MetadataStore, topics: Mapping[str, TopicNode], latest_epoch_of: LatestEpochOf
) -> dict[str, TopicImage]:
    """Load the topics in these nodes, including their partitions and configs."""
    wanted = {
        TopicPartition(name, number): (topic, replicas)
        for name, topic in topics.items()
        for number, replicas in topic.replicas.items()
    }
    found = await load_partitions(store, wanted, latest_epoch_of)
    configs = await load_configs_of(store, topics)
    images = {}
    for name, topic in topics.items():
        partitions = {number: found[TopicPartition(name, number)] for number in topic.replicas}
        images[name] = TopicImage(name, topic.topic_id or bytes(16), partitions, configs[name])
    return images


async def load_partitions(
    store: MetadataStore,
    wanted: Mapping[TopicPartition, tuple[TopicNode, Sequence[int]]],
    latest_epoch_of: LatestEpochOf,
) -> dict[TopicPartition, PartitionImage]:
    """Load partitions. The nodes of their topics, and their replicas, have already been read."""
    nodes = await store.read_many([layout.state_path(*name) for name in wanted])
    return {
        name: _partition(name, topic, replicas, node, latest_epoch_of)
        for (name, (topic, replicas)), node in zip(wanted.items(), nodes, strict=True)
    }


def _partition(
    name: TopicPartition,
    topic: TopicNode,
    replicas: Sequence[int],
    node: Znode | None,
    latest_epoch_of: LatestEpochOf,
) -> PartitionImage:
    if node is None:
        # Either the controller died after it wrote the topic but before it wrote the state, or
        # somebody deleted the state node by hand.
        return PartitionImage.never_led(replicas, latest_epoch_of(name))
    state = layout.decode_state(*name, node.data)
    return PartitionImage(
        state.leader,
        state.leader_epoch,
        state.isr,
        tuple(replicas),
        node.version,
        state.controller_epoch,
        adding=tuple(topic.adding.get(name.partition, ())),
        removing=tuple(topic.removing.get(name.partition, ())),
    )


async def load_configs_of(
    store: MetadataStore, names: Iterable[str]
) -> dict[str, Mapping[str, str]]:
    """Load the configs set on these topics. They are empty if the node is missing or malformed.

    A malformed node is logged, but does not stop the controller.
    """
    paths = {name: layout.topic_config_path(name) for name in names}
    nodes = await store.read_many(list(paths.values()))
    configs: dict[str, Mapping[str, str]] = {}
    for (name, path), node in zip(paths.items(), nodes, strict=True):
        try:
            configs[name] = {} if node is None else layout.decode_config(path, node.data)
        except CorruptData as error:
            _log.error("topic %s falls back to the broker's configs: %s", name, error)
            configs[name] = {}
    return configs


async def load_topic_ids(store: MetadataStore, names: Iterable[str]) -> dict[str, bytes]:
    """Load the ids of these topics. Topics that have none, or do not exist, are omitted."""
    paths = {name: layout.topic_path(name) for name in names}
    nodes = await store.read_many(list(paths.values()))
    ids = {}
    for name, node in zip(paths, nodes, strict=True):
        topic_id = None if node is None else layout.decode_topic(name, node.data).topic_id
        if topic_id is not None:
            ids[name] = topic_id
    return ids


async def load_topic_config(store: MetadataStore, name: str) -> Mapping[str, str]:
    """Load the configs set on a topic. They are empty if there is no node. Raises CorruptData."""
    path = layout.topic_config_path(name)
    node = await store.read(path)
    return {} if node is None else layout.decode_config(path, node.data)


async def children(store: MetadataStore, path: str) -> tuple[str, ...]:
    """Return the sorted names of the path's children, or none if the path does not exist."""
    node = await store.read(path)
    return () if node is None else tuple(sorted(node.children))
