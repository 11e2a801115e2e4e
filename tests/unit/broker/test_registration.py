"""A broker's first steps in the metadata tree, each safe to repeat."""

from __future__ import annotations

import asyncio

from barnabas.broker.registration import become_controller, ensure_base, register
from barnabas.clock import SystemClock, SystemRandom
from barnabas.cluster.embedded import EmbeddedStore
from barnabas.cluster.image import BrokerImage, Endpoint
from barnabas.cluster.store import Create, Delete, Set, Znode

BROKER = BrokerImage(0, (Endpoint("PLAINTEXT", "h", 9092, "PLAINTEXT"),), "r1", 0)


def test_the_base_is_made_once() -> None:
    async def scenario() -> None:
        store = EmbeddedStore()
        first = await ensure_base(store, None, SystemRandom())
        await store.commit([Delete("/config/ips")])  # an older release knew less
        zxid = store._tree.zxid
        assert await ensure_base(store, first, SystemRandom()) == first
        assert await store.read("/config/ips") is not None
        assert await ensure_base(store, None, SystemRandom()) == first
        assert store._tree.zxid == zxid + 1
        await store.close()

    asyncio.run(scenario())


def test_a_registration_has_the_czxid_as_its_epoch() -> None:
    """ZK-2"""

    async def scenario() -> None:
        store = EmbeddedStore()
        await ensure_base(store, None, SystemRandom())
        registered = await register(store, BROKER, SystemClock())
        node = await store.read("/brokers/ids/0")
        assert node is not None
        assert registered == BROKER._replace(epoch=node.czxid)
        assert b'"rack":"r1"' in (node.data or b"")
        await store.close()

    asyncio.run(scenario())


def test_the_office_is_for_one() -> None:
    """ZK-3: whoever creates /controller first; the epoch grows with each election."""

    async def scenario() -> None:
        store = EmbeddedStore()
        await ensure_base(store, None, SystemRandom())
        assert await become_controller(store, 1, SystemClock()) == (1, 1)
        assert await become_controller(store, 2, SystemClock()) is None
        await store.commit([Delete("/controller")])
        assert await become_controller(store, 2, SystemClock()) == (2, 2)
        await store.close()

    asyncio.run(scenario())


class Overtaken(EmbeddedStore):
    """Between our look at the epoch and our commit another broker was elected, and died."""

    async def read(self, path: str) -> Znode | None:
        node = await super().read(path)
        if path == "/controller_epoch" and node is not None and node.data == b"1":
            await self.commit([Set(path, b"2")])
        return node


def test_an_election_that_was_overtaken_is_lost() -> None:
    """ZK-3: no epoch is given out twice."""

    async def scenario() -> None:
        store = Overtaken()
        await ensure_base(store, None, SystemRandom())
        await store.commit([Create("/controller_epoch", b"1")])
        assert await become_controller(store, 1, SystemClock()) is None
        assert await store.read("/controller") is None
        assert await become_controller(store, 1, SystemClock()) == (3, 2)
        await store.close()

    asyncio.run(scenario())
