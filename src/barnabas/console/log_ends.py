"""Looks up the start or end offsets of many logs, with one request to each leader.

If a leader does not answer, only the offsets of its own partitions are missing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from barnabas.client.channel import BrokerAddress, system_seams
from barnabas.client.cluster import Cluster
from barnabas.client.config import ClientConfig, configure, split
from barnabas.client.errors import Unreachable
from barnabas.client.offsets import READ_UNCOMMITTED, OffsetFinder
from barnabas.console.snapshot import ClusterLook
from barnabas.errors import KafkaError
from barnabas.types import TopicPartition


class LogEnds:
    """Asks leaders over its own connections. Call `start` before use and `close` at the end."""

    def __init__(self, servers: str, settings: Mapping[str, Any]) -> None:
        names, given = split(servers, settings)
        config, _ = configure(ClientConfig, given)
        self._cluster = Cluster(names, config, system_seams())
        self._finder = OffsetFinder(self._cluster, READ_UNCOMMITTED)

    async def start(self) -> None:
        """Connect. Raises NoBrokersAvailable."""
        await self._cluster.start()

    async def close(self) -> None:
        """Disconnect."""
        await self._cluster.close()

    async def at(
        self, look: ClusterLook, names: Iterable[TopicPartition], when_ms: int
    ) -> dict[TopicPartition, int]:
        """Return the offset of each partition at a timestamp, or at EARLIEST or LATEST.

        An offset of -1 means that all records are older than the timestamp. Partitions are omitted
        if they have no leader or if their leader does not answer.
        """
        found: dict[TopicPartition, int] = {}

        async def ask(node: BrokerAddress, own: Sequence[TopicPartition]) -> None:
            try:
                answers = await self._finder.ask(node, dict.fromkeys(own, when_ms))
            except (Unreachable, KafkaError):
                return
            for name, at in answers.items():
                if not isinstance(at, KafkaError):
                    found[name] = at.offset

        await asyncio.gather(*(ask(node, own) for node, own in by_leader(look, names).items()))
        return found


def by_leader(
    look: ClusterLook, names: Iterable[TopicPartition]
) -> dict[BrokerAddress, list[TopicPartition]]:
    """Return the partitions that have a live leader, grouped by the address of the leader."""
    nodes = {
        each.broker_id: BrokerAddress(each.broker_id, each.host, each.port)
        for each in look.cluster.brokers
    }
    found: dict[BrokerAddress, list[TopicPartition]] = {}
    for name in names:
        node = nodes.get(_leader(look, name))
        if node is not None:
            found.setdefault(node, []).append(name)
    return found


def _leader(look: ClusterLook, name: TopicPartition) -> int:
    topic = look.topics.get(name.topic)
    if topic is None or name.partition >= len(topic.partitions):
        return -1
    return topic.partitions[name.partition].leader
