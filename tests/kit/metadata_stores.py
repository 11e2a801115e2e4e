"""Sessions on one tree, embedded or in ZooKeeper: what tests of the metadata seam run against."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Protocol

from kazoo.client import KazooClient  # type: ignore[import-untyped]

from barnabas.cluster.embedded import EmbeddedStore
from barnabas.cluster.embedded_session import EmbeddedSession
from barnabas.cluster.store import (
    MetadataStore,
)
from barnabas.cluster.zookeeper import ZooKeeperStore
from barnabas.cluster.zookeeper_settings import Settings
from tests.kit.waiting import until

SESSION_MS = 10_000


class Stores(Protocol):
    """A tree, empty at first."""

    async def open(self) -> MetadataStore:
        """One more session."""
        ...

    async def expire(self, store: MetadataStore) -> None:
        """End a session that `open` gave, as a server does; returns when the next one is there."""
        ...

    async def close(self) -> None: ...


class EmbeddedStores:
    """In memory; `open` must be called on a loop."""

    def __init__(self) -> None:
        self._store = EmbeddedStore()

    async def open(self) -> MetadataStore:
        return self._store.session()

    async def expire(self, store: MetadataStore) -> None:
        assert isinstance(store, EmbeddedSession)
        store.expire()
        await asyncio.sleep(0)
        store.reconnect()

    async def close(self) -> None:
        await self._store.close()


class ZooKeeperStores:
    """Below a chroot that no other test has."""

    def __init__(self, connect: str) -> None:
        self._connect = connect
        self._opened: list[ZooKeeperStore] = []

    async def open(self) -> MetadataStore:
        self._opened.append(await ZooKeeperStore.open(Settings(self._connect, SESSION_MS)))
        return self._opened[-1]

    async def expire(self, store: MetadataStore) -> None:
        assert isinstance(store, ZooKeeperStore)
        before = store.session_id
        await end_session(store, self._connect.partition("/")[0])
        await until(lambda: store.session_id != before)

    async def close(self) -> None:
        for store in self._opened:
            await store.close()


async def end_session(store: ZooKeeperStore, hosts: str) -> None:
    """Take the session over, with its password, and close it."""
    client = store._connection._client
    client_id = client._session_id, client._session_passwd

    def take_over() -> None:
        thief = KazooClient(hosts, client_id=client_id)
        thief.start()
        thief.stop()
        thief.close()

    await asyncio.get_running_loop().run_in_executor(None, take_over)


@contextlib.asynccontextmanager
async def opened(settings: Settings | str) -> AsyncIterator[ZooKeeperStore]:
    if isinstance(settings, str):
        settings = Settings(settings, SESSION_MS)
    store = await ZooKeeperStore.open(settings)
    try:
        yield store
    finally:
        await store.close()


async def data_of(store: MetadataStore, path: str) -> bytes | None:
    node = await store.read(path)
    assert node is not None, path
    return node.data
