"""Several sessions on one embedded store: removal of their nodes, and notifications."""

from __future__ import annotations

import asyncio

import pytest

from barnabas.cluster.embedded import EmbeddedStore
from barnabas.cluster.store import Create, SessionExpired, SessionState, Set


def test_each_session_has_its_own_ephemeral_nodes() -> None:
    async def test() -> None:
        store = EmbeddedStore()
        one, two = store.session(), store.session()
        assert len({store.session_id, one.session_id, two.session_id}) == 3
        await one.commit([Create("/one", b"1", ephemeral=True)])
        await two.commit([Create("/two", b"2", ephemeral=True)])
        seen = await store.read("/one")
        assert seen is not None and seen.owner == one.session_id
        await one.close()
        assert await store.read("/one") is None
        assert await store.read("/two") is not None
        with pytest.raises(SessionExpired):
            await one.read("/two")

    asyncio.run(test())


def test_a_session_that_expires_notifies_its_watchers_and_all_others() -> None:
    async def test() -> None:
        store = EmbeddedStore()
        one, two = store.session(), store.session()
        notified: list[str] = []
        states: list[SessionState] = []
        one.on_session(states.append)
        await one.commit([Create("/mine", ephemeral=True)])
        one.watch("/other", lambda: notified.append("one"))
        two.watch("/mine", lambda: notified.append("two"))
        one.expire()
        assert sorted(notified) == ["one", "two"]
        assert states == [SessionState.EXPIRED]
        with pytest.raises(SessionExpired):
            await one.commit([Create("/x")])
        before = one.session_id
        one.reconnect()
        assert states == [SessionState.EXPIRED, SessionState.CONNECTED]
        assert one.session_id != before
        await one.commit([Create("/mine", ephemeral=True)])

    asyncio.run(test())


def test_a_watch_fires_once_and_not_in_a_later_session() -> None:
    async def test() -> None:
        store = EmbeddedStore()
        session = store.session()
        await store.commit([Create("/node", b"")])
        notified: list[int] = []
        notify = lambda: notified.append(1)  # noqa: E731 - the same callback twice
        session.watch("/node", notify)
        session.watch("/node", notify)
        await store.commit([Set("/node", b"1")])
        await store.commit([Set("/node", b"2")])
        assert notified == [1]
        session.watch("/node", notify)
        session.expire()
        assert notified == [1, 1]
        session.reconnect()
        await store.commit([Set("/node", b"3")])
        assert notified == [1, 1], "a watcher in the old session reads again by itself"

    asyncio.run(test())
