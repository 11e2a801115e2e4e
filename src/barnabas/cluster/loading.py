"""Reading the metadata tree: all of it for a new controller, parts of it for the others.

What the tree says is taken as it is; a node that cannot be read raises CorruptData with its path.
Nodes that are missing half-way (a creation or deletion that a crash interrupted) are no error:
a partition without a state node is loaded as one that nobody has led yet, but with the epochs that
its log knows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from barnabas.cluster import layout
from barnabas.cluster.image import NEVER_LED, BrokerImage, PartitionImage, TopicImage
from barnabas.cluster.store import MetadataStore
from barnabas.types import TopicPartition

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


async def load_topics(
    store: MetadataStore, latest_epoch_of: LatestEpochOf = no_log
) -> dict[str, TopicImage]:
    """Every topic, by name."""
    topics = {}
    for name in await children(store, layout.TOPICS):
        topic = await load_topic(store, name, latest_epoch_of)
        if topic is not None:
            topics[name] = topic
    return topics


async def load_topic(
    store: MetadataStore, name: str, latest_epoch_of: LatestEpochOf = no_log
) -> TopicImage | None:
    """One topic with its partitions and its config, or None where there is none."""
    node = await store.read(layout.topic_path(name))
    if node is None:
        return None
    topic = layout.decode_topic(name, node.data)
    partitions = {
        number: await _load_partition(store, TopicPartition(name, number), ids, latest_epoch_of)
        for number, ids in topic.replicas.items()
    }
    config = await load_topic_config(store, name)
    return TopicImage(name, topic.topic_id or bytes(16), partitions, config)


async def load_added_partitions(
    store: MetadataStore, known: TopicImage, latest_epoch_of: LatestEpochOf = no_log
) -> dict[int, PartitionImage]:
    """The partitions that a topic's node has by now, and its image has not."""
    node = await store.read(layout.topic_path(known.name))
    if node is None:
        return {}
    replicas = layout.decode_topic(known.name, node.data).replicas
    return {
        number: await _load_partition(
            store, TopicPartition(known.name, number), ids, latest_epoch_of
        )
        for number, ids in replicas.items()
        if number not in known.partitions
    }


async def load_topic_config(store: MetadataStore, name: str) -> dict[str, str]:
    """What a topic's own config sets; nothing if it has no node."""
    path = layout.topic_config_path(name)
    node = await store.read(path)
    return {} if node is None else layout.decode_config(path, node.data)


async def load_topic_configs(store: MetadataStore) -> dict[str, dict[str, str]]:
    """The configs of all topics that have any: what a broker needs before it opens its logs."""
    configs = {}
    for name in await children(store, layout.TOPIC_CONFIGS):
        config = await load_topic_config(store, name)
        if config:
            configs[name] = config
    return configs


async def load_topic_paths(store: MetadataStore, name: str) -> list[str]:
    """Every node that there is of a topic, in the order in which they can be deleted.

    Its state nodes, theirs and its own; its config; last the wish for its deletion.
    """
    paths = await _paths_below(store, layout.topic_path(name))
    paths += await _paths_below(store, layout.topic_config_path(name))
    paths += await _paths_below(store, layout.delete_topic_path(name))
    return paths


async def _paths_below(store: MetadataStore, path: str) -> list[str]:
    node = await store.read(path)
    if node is None:
        return []
    paths = []
    for child in sorted(node.children):
        paths += await _paths_below(store, f"{path}/{child}")
    return [*paths, path]


async def children(store: MetadataStore, path: str) -> tuple[str, ...]:
    """The names below a path, sorted; none where the path itself is missing."""
    node = await store.read(path)
    return () if node is None else tuple(sorted(node.children))


async def _load_partition(
    store: MetadataStore,
    name: TopicPartition,
    replicas: Sequence[int],
    latest_epoch_of: LatestEpochOf,
) -> PartitionImage:
    node = await store.read(layout.state_path(*name))
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
    )
