"""Threads of brokers, and the session of one that stands still."""

from __future__ import annotations

import asyncio

import pytest

from barnabas.cluster.embedded import EmbeddedStore
from barnabas.cluster.store import SessionState
from barnabas.errors import ConfigError
from barnabas.testing.embedded.own_threads import OwnThreads
from tests.kit.waiting import until


@pytest.mark.parametrize("timeout_ms", [0, 3_600_000])
def test_a_session_ends_in_a_standstill_that_is_too_long(timeout_ms: int) -> None:
    async def scene() -> None:
        threads, session = OwnThreads(), EmbeddedStore().session()
        loop = threads.begin(1)
        before = session.session_id
        states: list[SessionState] = []
        session.on_session(states.append)

        pause = await asyncio.to_thread(threads.stop, 1)
        threads.on_stopped(1, pause, session, timeout_ms)
        with pytest.raises(ConfigError, match=r"already paused; call resume\(1\) first"):
            threads.stop(1)
        if not timeout_ms:
            await until(lambda: session.session_state is SessionState.EXPIRED)
        threads.go_on(1)
        threads.go_on(1)
        expected = [SessionState.EXPIRED, SessionState.CONNECTED]
        assert states == ([] if timeout_ms else expected)
        assert (session.session_id == before) == bool(timeout_ms)

        async def where() -> asyncio.AbstractEventLoop:
            return asyncio.get_running_loop()

        assert await threads.run(1, where()) is loop
        await threads.end(1)
        assert loop.is_closed()

    asyncio.run(scene())
