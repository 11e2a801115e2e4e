"""Reading the metadata tree: all of it for a new controller, parts of it for the others.

Nodes are read many at a time: on a server every question takes its way there and back.

What the tree says is taken as it is; a node that cannot be read raises CorruptData with its path,
but for the config of a topic, which counts for nothing then.
Nodes that are missing half-way (a creation or deletion that a crash interrupted) are no error:
a partition without a state node is loaded as one that nobody has led yet, but with the epochs that
its log knows.
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
"""The newest leader epoch in a partition's log; -1 where there is no log, or none in it."""


def no_log(topic_partition: TopicPartition) -> int:
    """The epoch of a partition that has no log here."""
    return NEVER_LED


async def load_brokers(store: MetadataStore) -> dict[int, BrokerImage]:
    """The brokers that are registered now."""
    brokers = {}
    for name in await children(store, layout.BROKER_IDS):
        broker_id = int(name)
        node = await store.read(layout.broker_path(broker_id))
        if node is not None:  # else it went between the two reads
            brokers[broker_id] = layout.decode_broker(broker_id, node.data, node.czxid)
    return dict(sorted(brokers.items()))


async def images_of(
    store: MetadataStore, topics: Mapping[str, TopicNode], latest_epoch_of: LatestEpochOf
) -> dict[str, TopicImage]:
    """The topics whose nodes these are, with their partitions and their configs."""
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
    """These partitions, each with its topic's node and its replicas."""
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
    """What these topics' own configs set; nothing if there is no node, or none that can be read.

    That is said, and no reason to lead no topic at all.
    """
    paths = {name: layout.topic_config_path(name) for name in names}
    nodes = await store.read_many(list(paths.values()))
    configs: dict[str, Mapping[str, str]] = {}
    for (name, path), node in zip(paths.items(), nodes, strict=True):
        try:
            configs[name] = {} if node is None else layout.decode_config(path, node.data)
        except CorruptData as error:
            _log.error("topic %s has the broker's own settings: %s", name, error)
            configs[name] = {}
    return configs


async def load_topic_config(store: MetadataStore, name: str) -> Mapping[str, str]:
    """What a topic's own config sets; nothing if it has no node. CorruptData."""
    path = layout.topic_config_path(name)
    node = await store.read(path)
    return {} if node is None else layout.decode_config(path, node.data)


async def children(store: MetadataStore, path: str) -> tuple[str, ...]:
    """The names below a path, sorted; none where the path itself is missing."""
    node = await store.read(path)
    return () if node is None else tuple(sorted(node.children))
