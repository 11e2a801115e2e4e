"""The users of the secured suites in a ZooKeeper, for brokers of Kafka's, which make none."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from barnabas.broker.security.first_users import ensure_users
from barnabas.broker.security.secure_setup import MECHANISM
from barnabas.cluster.zookeeper import ZooKeeperStore
from barnabas.cluster.zookeeper_settings import Settings
from tests.kit.secured.suite import suite

_CONNECT = "zookeeper.connect="
_SESSION_MS = 60_000


def make_users(options: Sequence[str]) -> None:
    """In the tree that these settings of a broker name."""
    [connect] = (each.removeprefix(_CONNECT) for each in options if each.startswith(_CONNECT))
    asyncio.run(_make(connect))


async def _make(connect: str) -> None:
    store = await ZooKeeperStore.open(Settings(connect, _SESSION_MS))
    try:
        await ensure_users(store, MECHANISM, suite().setup.passwords)
    finally:
        await store.close()
