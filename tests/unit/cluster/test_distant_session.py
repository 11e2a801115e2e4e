"""Sessions on a store in another thread: as any other, and late where their broker stands still."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator

import pytest

from barnabas.client.loop_thread import LoopThread
from barnabas.cluster.distant_session import DistantSession
from barnabas.cluster.embedded import EmbeddedStore
from barnabas.cluster.embedded_session import EmbeddedSession
from barnabas.cluster.store import Create, MetadataStore, SessionExpired, SessionState
from tests.kit.metadata_seam import MetadataSeamSuite, Run
from tests.kit.metadata_stores import Stores
from tests.kit.waiting import until


class DistantStores:
    """A store on a loop of its own; `open` must be called on another one."""

    def __init__(self) -> None:
        self.thread = LoopThread("store")
        self._store = self.thread.call(EmbeddedStore)
        self._sessions: dict[MetadataStore, EmbeddedSession] = {}

    async def open(self) -> MetadataStore:
        loop = asyncio.get_running_loop()

        def make() -> DistantSession:
            session = self._store.session()
            made = DistantSession(session, loop)
            self._sessions[made] = session
            return made

        return self.thread.call(make)

    def end(self, store: MetadataStore) -> None:
        """End its session and begin the next one, while the caller's loop stands still."""
        self.thread.call(self._sessions[store].expire)
        self.thread.call(self._sessions[store].reconnect)

    async def expire(self, store: MetadataStore) -> None:
        before = store.session_id
        self.end(store)
        await until(lambda: store.session_id != before)

    async def close(self) -> None:
        self.thread.run(self._store.close())


@pytest.fixture
def stores() -> Iterator[DistantStores]:
    made = DistantStores()
    yield made
    made.thread.stop()


@pytest.fixture
def run(stores: DistantStores) -> Run:
    def play(scenario: Callable[[Stores], Awaitable[None]]) -> None:
        async def scene() -> None:
            await scenario(stores)
            await stores.close()

        asyncio.run(scene())

    return play


class TestDistant(MetadataSeamSuite):
    pass


def test_what_was_begun_before_the_end_is_known_fails(stores: DistantStores) -> None:
    async def scene() -> None:
        store = await stores.open()
        before = store.session_id
        heard: list[SessionState] = []
        store.on_session(heard.append)
        stores.end(store)
        assert (store.session_id, store.session_state) == (before, SessionState.CONNECTED)
        with pytest.raises(SessionExpired, match="a new one has started"):
            await store.commit([Create("/late")])
        await until(lambda: heard == [SessionState.EXPIRED, SessionState.CONNECTED])
        assert await store.read("/late") is None
        await store.close()
        with pytest.raises(SessionExpired):
            await store.read("/")

    asyncio.run(scene())


def test_a_change_after_the_close_is_not_told(stores: DistantStores) -> None:
    async def scene() -> None:
        store, other = await stores.open(), await stores.open()
        heard: list[str] = []
        store.watch("/a", lambda: heard.append("/a"))
        await store.read("/a")
        await store.close()
        await other.commit([Create("/a")])
        await other.read("/a")
        assert heard == []

    asyncio.run(scene())
