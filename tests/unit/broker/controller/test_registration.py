"""A broker's first steps in the metadata tree, each safe to repeat."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from barnabas.broker.controller.registration import (
    become_controller,
    elected_term,
    ensure_base,
    register,
    resign,
)
from barnabas.clock import SystemClock, SystemRandom
from barnabas.cluster.embedded import EmbeddedStore
from barnabas.cluster.image import BrokerImage, Endpoint
from barnabas.cluster.store import (
    Create,
    Delete,
    Operation,
    OutcomeUnknown,
    SessionExpired,
    Set,
    Znode,
)
from barnabas.errors import ConfigError

BROKER = BrokerImage(0, (Endpoint("PLAINTEXT", "h", 9092, "PLAINTEXT"),), "r1", 0)


def test_the_base_is_made_once() -> None:
    async def scenario() -> None:
        store = EmbeddedStore()
        first = await ensure_base(store, None, SystemRandom())
        await store.commit([Delete("/config/ips")])  # an older release knew less
        zxid = store.tree.zxid
        assert await ensure_base(store, first, SystemRandom()) == first
        assert await store.read("/config/ips") is not None
        assert await ensure_base(store, None, SystemRandom()) == first
        assert store.tree.zxid == zxid + 1
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


def test_one_broker_is_controller() -> None:
    """ZK-3: the first to create /controller; the epoch grows with each election."""

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


class Slow(EmbeddedStore):
    """Answers a read when others have had their turn, as a store across the network does."""

    async def read(self, path: str) -> Znode | None:
        node = await super().read(path)
        await asyncio.sleep(0)
        return node


def test_brokers_that_begin_at_the_same_moment_agree_on_the_cluster() -> None:
    """ZK-1: one of them makes the base, and the others take it."""

    async def scenario() -> None:
        store = Slow()
        ids = await asyncio.gather(*(ensure_base(store, None, SystemRandom()) for _ in range(4)))
        assert len(set(ids)) == 1
        with pytest.raises(ConfigError, match="belongs to cluster"):
            await ensure_base(store, "_____________________w", SystemRandom())
        await store.close()

    asyncio.run(scenario())


def test_an_earlier_life_is_waited_for_and_another_broker_is_not() -> None:
    """ZK-2"""

    async def scenario() -> None:
        store = EmbeddedStore()
        await ensure_base(store, None, SystemRandom())
        earlier, session = store.session(), store.session()
        first = await register(earlier, BROKER, SystemClock())
        with pytest.raises(ConfigError, match=r"broker\.id=0 is in use"):
            await register(session, BROKER, SystemClock(), 100)
        waiting = asyncio.ensure_future(register(session, BROKER, SystemClock(), 60_000))
        await asyncio.sleep(0.05)
        assert not waiting.done()
        earlier.expire()
        again = await asyncio.wait_for(waiting, 60)
        assert again.epoch > first.epoch
        await store.close()

    asyncio.run(scenario())


class Unanswered(EmbeddedStore):
    """A commit is never answered, whether it happens or not."""

    happens = True

    async def commit(self, operations: Sequence[Operation]) -> list[str | int]:
        if self.happens:
            await super().commit(operations)
        raise OutcomeUnknown(operations[0].path, "the connection broke")


def test_the_tree_shows_what_came_of_a_commit_that_was_not_answered() -> None:
    """ZK-2, ZK-3"""

    async def scenario() -> None:
        store = Unanswered()
        await EmbeddedStore.commit(store, [Create("/brokers"), Create("/brokers/ids")])
        registered = await register(store, BROKER, SystemClock())
        node = await store.read("/brokers/ids/0")
        assert node is not None and node.czxid == registered.epoch
        assert await become_controller(store, 0, SystemClock()) == (1, 1)
        assert await elected_term(store, 0) == (1, 1)
        assert await elected_term(store, 7) is None
        await EmbeddedStore.commit(store, [Delete("/controller"), Delete("/brokers/ids/0")])
        store.happens = False
        with pytest.raises(OutcomeUnknown):
            await register(store, BROKER, SystemClock())
        with pytest.raises(OutcomeUnknown):
            await become_controller(store, 0, SystemClock())
        await store.close()

    asyncio.run(scenario())


def test_zk_2_a_session_that_ends_before_the_registration_is_read_is_an_error_to_retry() -> None:
    """By then the node is gone, which no commit has failed to make."""

    async def scenario() -> None:
        store = EmbeddedStore()
        await ensure_base(store, None, SystemRandom())
        session = store.session()
        commit = session.commit

        async def last(operations: Sequence[Operation]) -> list[str | int]:
            results = await commit(operations)
            session.expire()
            session.reconnect()
            return results

        session.commit = last  # type: ignore[method-assign]
        with pytest.raises(SessionExpired):
            await register(session, BROKER, SystemClock())
        await store.close()

    asyncio.run(scenario())


def test_only_the_controller_resigns() -> None:
    """ZK-3: another broker can be elected after one that cannot go on."""

    async def scenario() -> None:
        store = EmbeddedStore()
        await ensure_base(store, None, SystemRandom())
        one, other = store.session(), store.session()
        assert await become_controller(one, 1, SystemClock()) == (1, 1)
        await resign(other, 1)
        await resign(one, 2)
        assert await elected_term(one, 1) == (1, 1)
        await resign(one, 1)
        assert await become_controller(other, 2, SystemClock()) == (2, 2)
        await store.close()

    asyncio.run(scenario())
