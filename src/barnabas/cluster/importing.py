"""Imports a metadata tree into an empty store in order to take over a Kafka broker (ZK-6).

The tree maps paths to nodes. In JSON form, it looks like this:

    {"/brokers/topics/t": {"data": "{...}", "version": 0, ...},
     "/brokers/ids/0":    {"data": "{...}", "ephemeral": true, ...}, ...}

`data` is text or null. If the data is not text, `base64` contains it instead. The only other field
that is used is `ephemeral`. Ephemeral nodes are not imported, because their sessions have ended.
All other nodes are imported unchanged, even if they are unknown. Data versions start at 0 again,
which has no effect because no broker of the old cluster is running.

If the state node of a partition is missing, it is created. Its leader epoch is greater than every
epoch in the log and never 0, because reusing an old epoch would truncate the epoch history. For the
same reason, if a state node is older than the log (for example, because it comes from a backup),
its epoch is raised above the epochs in the log.
"""

from __future__ import annotations

import binascii
from base64 import b64decode
from collections.abc import Mapping
from typing import Any, NamedTuple

from barnabas.cluster import layout
from barnabas.cluster.exporting import ROOT, ZOOKEEPERS_OWN
from barnabas.cluster.image import NEVER_LED
from barnabas.cluster.layout import StateNode
from barnabas.cluster.loading import LatestEpochOf, children
from barnabas.cluster.store import Create, MetadataStore, Operation, Set
from barnabas.errors import ConfigError, CorruptData
from barnabas.types import TopicPartition

_HAVE_ENTRIES = (
    layout.TOPICS,
    layout.TOPIC_CONFIGS,
    layout.DELETE_TOPICS,
    "/config/brokers",
    "/config/clients",
    "/config/users",
    "/config/ips",
)
"""Nodes that get children only when the store is used, not when a broker merely starts."""

Data = dict[str, bytes | None]


class ImportSummary(NamedTuple):
    """The result of an import."""

    nodes: int
    topics: int
    partitions: int
    ephemeral_nodes: int
    """The number of ephemeral nodes that were not imported."""
    new_states: tuple[TopicPartition, ...]
    """The partitions for which a state node had to be created."""
    raised_epochs: tuple[TopicPartition, ...]
    """The partitions whose state node had an older leader epoch than their log."""


async def import_tree(
    store: MetadataStore, tree: Mapping[str, Any], leader_epoch_of: LatestEpochOf
) -> ImportSummary:
    """Import the tree as a whole into a store that is empty or has not been used.

    `leader_epoch_of` returns the newest leader epoch in the log of a partition, or -1. Raises
    ConfigError if the import is not possible, CorruptData if the tree cannot be read, or
    MetadataError if writing to the store fails. If this fails, nothing has been imported.
    """
    await _check_empty(store)
    data, ephemeral_nodes = _persistent(tree)
    if not data:
        raise CorruptData("the tree has no nodes of a cluster")
    # This node is ephemeral if a ZooKeeper controller created it, but persistent if a KRaft
    # controller created it during a migration (KIP-866).
    if layout.CONTROLLER in data:
        raise ConfigError(
            f"{layout.CONTROLLER} is not ephemeral: a KRaft controller has taken over this cluster"
        )
    topics = {
        name: layout.decode_topic(name, data[layout.topic_path(name)])
        for name in _names_below(data, layout.TOPICS)
    }
    new_states, raised_epochs = [], []
    for name, topic in topics.items():
        for number, replicas in topic.replicas.items():
            if not replicas:
                raise CorruptData(f"{layout.topic_path(name)}: partition {number} has no replicas")
            partition = TopicPartition(name, number)
            # Use an epoch that is greater than every epoch in the log. If an epoch were used twice,
            # two histories could not be told apart.
            epoch = max(leader_epoch_of(partition), NEVER_LED) + 1
            if layout.state_path(name, number) not in data:
                _add_state(data, partition, replicas, epoch)
                new_states.append(partition)
            elif _raise_epoch(data, partition, epoch):
                raised_epochs.append(partition)
    await _check_cluster_id(store, data)
    await _keep_larger_numbers(store, data)
    operations: list[Operation] = []
    for path in sorted(data):
        exists = await store.read(path) is not None
        operations.append((Set if exists else Create)(path, data[path]))
    if operations:
        await store.commit(operations)
    partitions = sum(len(topic.replicas) for topic in topics.values())
    return ImportSummary(
        len(operations),
        len(topics),
        partitions,
        ephemeral_nodes,
        tuple(new_states),
        tuple(raised_epochs),
    )


async def _check_empty(store: MetadataStore) -> None:
    for path in _HAVE_ENTRIES:
        names = await children(store, path)
        if names:
            raise ConfigError(
                f"the metadata already has {path}/{names[0]}: a tree can be imported only before "
                "there are topics or configs"
            )


def _persistent(tree: Mapping[str, Any]) -> tuple[Data, int]:
    """Return the data of all persistent nodes by path, and the number of ephemeral nodes."""
    data: Data = {}
    ephemeral_nodes = 0
    for path, node in tree.items():
        # Both trees have a root, and the nodes of ZooKeeper itself are of no use elsewhere.
        if path == ROOT or f"{path}/".startswith(f"{ZOOKEEPERS_OWN}/"):
            continue
        content = _data_of(path, node)
        if node.get("ephemeral"):
            ephemeral_nodes += 1
        else:
            data[path] = content
    for path in sorted(data):
        parent = path.rpartition("/")[0]
        if parent and parent not in data:
            raise CorruptData(f"{path} is in the tree, but its parent {parent} is not")
    return data, ephemeral_nodes


def _data_of(path: str, node: Any) -> bytes | None:
    """Decode the data of a node from its JSON form. Raises CorruptData if it is malformed."""
    if not path.startswith("/") or "" in path[1:].split("/"):
        raise CorruptData(f"{path!r} is not a node's path")
    if not isinstance(node, Mapping):
        raise CorruptData(f"{path} is {node!r} in the tree, not an object with data")
    if "base64" in node:
        try:
            return b64decode(node["base64"], validate=True)
        except (TypeError, ValueError, binascii.Error):
            raise CorruptData(f"{path} has invalid base64 {node['base64']!r}") from None
    if "data" not in node:
        raise CorruptData(f"{path} has neither data nor base64 in the tree; null means no data")
    text = node["data"]
    if text is None:
        return None
    try:
        return str.encode(text)
    except (TypeError, UnicodeEncodeError):
        raise CorruptData(f"{path} has data {text!r}, which is not text") from None


def _names_below(data: Data, parent: str) -> list[str]:
    prefix = f"{parent}/"
    below = (path[len(prefix) :] for path in data if path.startswith(prefix))
    return sorted(name for name in below if "/" not in name)


def _add_state(data: Data, name: TopicPartition, replicas: Any, leader_epoch: int) -> None:
    """Add a state node for a partition, with this leader epoch and with all replicas in sync."""
    controller_epoch = layout.decode_epoch(data.get(layout.CONTROLLER_EPOCH) or b"0")
    state = StateNode(replicas[0], leader_epoch, tuple(replicas), controller_epoch)
    data.setdefault(layout.partitions_path(name.topic), None)
    data.setdefault(layout.partition_path(*name), None)
    data[layout.state_path(*name)] = layout.encode_state(state)


def _raise_epoch(data: Data, name: TopicPartition, new_epoch: int) -> bool:
    """Raise the state's leader epoch if the log has a newer one. Return whether it was raised."""
    path = layout.state_path(*name)
    state = layout.decode_state(*name, data[path])
    if state.leader_epoch >= new_epoch - 1:
        return False
    data[path] = layout.encode_state(state._replace(leader_epoch=new_epoch))
    return True


async def _check_cluster_id(store: MetadataStore, data: Data) -> None:
    known = await store.read(layout.CLUSTER_ID)
    if known is None or layout.CLUSTER_ID not in data:
        return
    ours = layout.decode_cluster_id(known.data)
    theirs = layout.decode_cluster_id(data[layout.CLUSTER_ID])
    if ours != theirs:
        raise ConfigError(
            f"the tree belongs to cluster {theirs}, but this store belongs to cluster {ours}"
        )


async def _keep_larger_numbers(store: MetadataStore, data: Data) -> None:
    """Keep the greater controller epoch and producer ids, because neither may be used again."""
    epoch = await store.read(layout.CONTROLLER_EPOCH)
    if epoch is not None and layout.CONTROLLER_EPOCH in data:
        theirs = layout.decode_epoch(data[layout.CONTROLLER_EPOCH])
        # A broker rejects requests that contain an older controller epoch.
        if layout.decode_epoch(epoch.data) > theirs:
            del data[layout.CONTROLLER_EPOCH]
    ids = await store.read(layout.PRODUCER_ID_BLOCK)
    ours = None if ids is None else layout.decode_producer_id_block(ids.data)
    if ours is not None:
        block = layout.decode_producer_id_block(data.get(layout.PRODUCER_ID_BLOCK))
        if block is None or block.last < ours.last:
            data.pop(layout.PRODUCER_ID_BLOCK, None)
