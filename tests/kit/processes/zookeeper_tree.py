"""Nodes that a test wants in the tree of a real ZooKeeper."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from barnabas.cluster.store import Create
from barnabas.cluster.zookeeper import ZooKeeperStore
from barnabas.cluster.zookeeper_settings import Settings


def fill(connect: str, nodes: Mapping[str, bytes | None]) -> None:
    """Create nodes with their data, and those above them, except the ones that are there."""

    async def write() -> None:
        store = await ZooKeeperStore.open(Settings(connect, 60_000))
        paths = {path[:end] for path in nodes for end in range(len(path)) if path[end] == "/"}
        for path in sorted({*paths, *nodes} - {""}):
            if await store.read(path) is None:
                await store.commit([Create(path, nodes.get(path))])
        await store.close()

    asyncio.run(write())
