"""Watches and reads the nodes of topics during one term of a controller.

A node is watched before it is read. If it changes in the meantime, the watch fires and the node is
read again. The watch on a topic's node fires when partitions may have been added. Nodes are read in
groups because every request costs a round trip.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from functools import partial

from barnabas.clock import Random
from barnabas.cluster import layout
from barnabas.cluster.image import TopicImage
from barnabas.cluster.layout import TopicNode
from barnabas.cluster.loading import (
    LatestEpochOf,
    children,
    images_of,
    load_configs_of,
    load_partitions,
)
from barnabas.cluster.store import Check, MetadataStore, Operation, Set
from barnabas.controller.decision import split
from barnabas.named_tuple import NamedTuple
from barnabas.types import NO_TOPIC_ID, TopicPartition


class _Read(NamedTuple):
    """A topic's node, and its data version at the time of reading."""

    topic: TopicNode
    version: int


class TopicNodes:
    """Reads topics.

    `epoch_version` fences earlier controllers when ids are assigned to old topics.
    """

    __slots__ = ("_changed", "_epoch_version", "_latest_epoch_of", "_random", "_store", "_versions")

    def __init__(
        self,
        store: MetadataStore,
        random: Random,
        latest_epoch_of: LatestEpochOf,
        epoch_version: int,
        changed: Callable[[str], None],
    ) -> None:
        """`changed` is called with a topic's name whenever the topic's node has changed."""
        self._store = store
        self._random = random
        self._latest_epoch_of = latest_epoch_of
        self._epoch_version = epoch_version
        self._changed = changed
        self._versions: dict[str, int] = {}

    def take_versions(self) -> dict[str, int]:
        """Return the data versions of all topic nodes that have been read since the last call."""
        versions, self._versions = self._versions, {}
        return versions

    async def unknown(
        self, known: Container[str], ids: Mapping[str, bytes] | None = None
    ) -> dict[str, TopicImage]:
        """Read and watch all topics that are not known yet.

        `ids` contains the topic ids that an earlier controller announced.
        """
        names = [name for name in await children(self._store, layout.TOPICS) if name not in known]
        if not names:
            return {}
        self._watch(names)
        nodes = await self._nodes({name: (ids or {}).get(name) for name in names})
        topics = {name: node.topic for name, node in nodes.items()}
        return await images_of(self._store, topics, self._latest_epoch_of)

    async def grown(self, topics: Sequence[TopicImage]) -> list[TopicImage]:
        """Return the topics that have new partitions, each with all of its partitions."""
        if not topics:
            return []
        self._watch([topic.name for topic in topics])
        nodes = await self._nodes({topic.name: topic.topic_id for topic in topics})
        grown = []
        for topic in topics:
            if topic.name not in nodes:
                continue
            node = nodes[topic.name].topic
            wanted = {
                TopicPartition(topic.name, number): (node, replicas)
                for number, replicas in node.replicas.items()
                if number not in topic.partitions
            }
            added = await load_partitions(self._store, wanted, self._latest_epoch_of)
            if added:
                partitions = dict(topic.partitions)
                partitions.update((name.partition, each) for name, each in added.items())
                grown.append(topic._replace(partitions=partitions))
        return grown

    async def configs(self, names: Iterable[str]) -> dict[str, Mapping[str, str]]:
        """Return the configs that are set on these topics. They are empty for a topic without a
        config node.
        """
        return await load_configs_of(self._store, names)

    async def paths_of(self, names: Sequence[str]) -> list[str]:
        """Return all existing nodes of these topics in the order in which they must be deleted.

        The nodes of the topics and partitions come first, followed by the configs and finally the
        deletion requests.
        """
        paths: list[str] = []
        for root in (layout.topic_path, layout.topic_config_path, layout.delete_topic_path):
            paths += await self._paths_below([root(name) for name in names])
        return paths

    async def _paths_below(self, roots: Sequence[str]) -> list[str]:
        found: list[str] = []
        level = list(roots)
        while level:
            nodes = await self._store.read_many(level)
            there = [
                (path, node) for path, node in zip(level, nodes, strict=True) if node is not None
            ]
            found += [path for path, _ in there]
            level = [f"{path}/{child}" for path, node in there for child in sorted(node.children)]
        return found[::-1]

    def _watch(self, names: Iterable[str]) -> None:
        for name in names:
            self._store.watch(layout.topic_path(name), partial(self._changed, name))

    async def _nodes(self, ids: Mapping[str, bytes | None]) -> dict[str, _Read]:
        """Read the nodes of these topics, and assign ids to topics that have none because Kafka
        created them before 2.8 or below IBP 2.8 (KIP-516).

        `ids` is keyed by name. The id of an unknown topic is None. If an old Kafka tool has
        rewritten the node of a known topic and dropped the id, the topic keeps its id, because its
        logs would not match a new id.
        """
        nodes = await self._store.read_many([layout.topic_path(name) for name in ids])
        operations: list[Operation] = [Check(layout.CONTROLLER_EPOCH, self._epoch_version)]
        found = {}
        for (name, known), node in zip(ids.items(), nodes, strict=True):
            if node is None:
                continue
            topic, version = layout.decode_topic(name, node.data), node.version
            if topic.topic_id is None:
                has_been_led = bool(node.children)  # if not, it is a different topic with this name
                if not has_been_led or known is None or known == NO_TOPIC_ID:
                    known = self._random.uuid()
                topic = topic._replace(topic_id=known)
                data = layout.encode_topic_node(topic)
                operations.append(Set(layout.topic_path(name), data, version))
                version += 1
            found[name] = _Read(topic, version)
            self._versions[name] = version
        if len(operations) > 1:
            for some in split(operations):
                await self._store.commit(some)
        return found
