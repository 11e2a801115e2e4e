"""Loads the metadata tree: all of it for a new controller, otherwise parts of it.

Nodes are read in bulk, because every request to a server takes a round trip.

A malformed node raises CorruptData with its path, except for topic configs, which are ignored if
malformed. Nodes that an interrupted creation or deletion left missing are no error: a partition
without a state node is loaded as never led, but with its log's epochs.
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
"""Returns the newest leader epoch in a partition's log; -1 without a log or without epochs."""


def no_log(topic_partition: TopicPartition) -> int:
    """Return the epoch of a partition without a local log."""
    return NEVER_LED


async def load_brokers(store: MetadataStore) -> dict[int, BrokerImage]:
    """Load the registered brokers."""
    brokers = {}
    for name in await children(store, layout.BROKER_IDS):
        broker_id = int(name)
        node = await store.read(layout.broker_path(broker_id))
        if node is not None:  # else it was removed between the two reads
            brokers[broker_id] = layout.decode_broker(broker_id, node.data, node.czxid)
    return dict(sorted(brokers.items()))


async def images_of(
    store: MetadataStore, topics: Mapping[str, TopicNode], latest_epoch_of: LatestEpochOf
) -> dict[str, TopicImage]:
    """Load these nodes' topics, with their partitions and configs."""
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
    """Load partitions, given their topics' nodes and their replicas."""
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
        # Either the controller died after writing the topic and before writing the state, or the
        # state was deleted by hand.
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
    """Load these topics' own configs, empty if the node is missing or malformed.

    A malformed node is logged; it does not stop the controller.
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


async def load_topic_config(store: MetadataStore, name: str) -> Mapping[str, str]:
    """Load a topic's own configs, empty without a node. Raises CorruptData."""
    path = layout.topic_config_path(name)
    node = await store.read(path)
    return {} if node is None else layout.decode_config(path, node.data)


async def children(store: MetadataStore, path: str) -> tuple[str, ...]:
    """Return the sorted names of a path's children; none if the path is missing."""
    node = await store.read(path)
    return () if node is None else tuple(sorted(node.children))
