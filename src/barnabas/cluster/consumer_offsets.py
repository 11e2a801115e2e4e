"""Reads the offsets that consumers older than Kafka 0.9 stored in ZooKeeper (ZK-7).

    /consumers/<group>/offsets/<topic>/<partition>     decimal text: the next record to read
    /consumers/<group>/ids/<consumer>                  ephemeral: the consumer is running

The nodes are only read, never written.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from barnabas.cluster.loading import children
from barnabas.cluster.store import MetadataStore
from barnabas.types import TopicPartition

_CONSUMERS = "/consumers"
_LAST_PARTITION = 2**31 - 1
_LAST_OFFSET = 2**63 - 1


class ConsumerOffsets(NamedTuple):
    """The offsets of one group. `unreadable` lists the nodes that do not contain a valid offset."""

    group_id: str
    offsets: dict[TopicPartition, int]
    running: int  # the number of running consumers, which may commit again
    unreadable: tuple[str, ...] = ()


async def load_consumer_offsets(store: MetadataStore) -> list[ConsumerOffsets]:
    """Return the offsets of all groups that have committed offsets, sorted by group name."""
    found = []
    for group_id in await children(store, _CONSUMERS):
        group = f"{_CONSUMERS}/{group_id}"
        topics = [f"{group}/offsets/{name}" for name in await children(store, f"{group}/offsets")]
        paths = await _below(store, topics)
        if paths:
            nodes = zip(paths, await store.read_many(paths), strict=True)
            data = {path: node.data for path, node in nodes if node is not None}
            running = len(await children(store, f"{group}/ids"))
            found.append(_offsets(group_id, data, running))
    return found


async def _below(store: MetadataStore, parents: Iterable[str]) -> list[str]:
    parents = list(parents)
    nodes = zip(parents, await store.read_many(parents), strict=True)
    return [
        f"{path}/{name}"
        for path, node in nodes
        if node is not None
        for name in sorted(node.children)
    ]


def _offsets(group_id: str, data: dict[str, bytes | None], running: int) -> ConsumerOffsets:
    offsets, unreadable = {}, []
    for path, content in data.items():
        _, topic, number = path.rsplit("/", 2)
        partition = _number(number, _LAST_PARTITION)
        offset = _number((content or b"").decode("utf-8", "replace").strip(), _LAST_OFFSET)
        if partition is None or offset is None:
            unreadable.append(path)
        else:
            offsets[TopicPartition(topic, partition)] = offset
    return ConsumerOffsets(group_id, dict(sorted(offsets.items())), running, tuple(unreadable))


def _number(text: str, most: int) -> int | None:
    is_number = text.isascii() and text.isdecimal() and len(text) < 20
    return int(text) if is_number and int(text) <= most else None
