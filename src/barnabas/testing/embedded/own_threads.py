"""Runs each broker of an embedded cluster in its own thread and loop, so that it can be paused."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from barnabas.client.loop_thread import LoopThread
from barnabas.cluster.embedded_session import EmbeddedSession
from barnabas.cluster.store import SessionState
from barnabas.errors import ConfigError
from barnabas.testing.embedded.pause import ThreadPause

T = TypeVar("T")


class _Standstill:
    """Represents a paused broker, whose session ends if the pause lasts too long. Use it on the
    metadata loop.
    """

    def __init__(self, pause: ThreadPause, session: EmbeddedSession, timeout_ms: int) -> None:
        self._pause = pause
        self._session = session
        self._has_expired = False
        loop = asyncio.get_running_loop()
        self._expiry = loop.call_later(timeout_ms / 1000, self._expire)

    def end(self) -> None:
        """Start a new session if the old session has ended, and resume the broker only
        after that.
        """
        self._expiry.cancel()
        # Start a new session, like a client that reconnects after its session has expired.
        if self._has_expired and self._session.session_state is SessionState.EXPIRED:
            self._session.reconnect()
        self._pause.resume()

    def _expire(self) -> None:
        if self._session.session_state is not SessionState.EXPIRED:
            self._has_expired = True
            self._session.expire()


class OwnThreads:
    """Manages one thread per broker id, from `begin` to `end`.

    Call all methods except `stop` on the metadata loop.
    """

    def __init__(self) -> None:
        self._threads: dict[int, LoopThread] = {}
        self._standstills: dict[int, _Standstill] = {}

    def begin(self, broker_id: int) -> asyncio.AbstractEventLoop:
        """Start a thread, and return its loop."""
        thread = self._threads[broker_id] = LoopThread(f"barnabas-broker-{broker_id}")
        return thread.loop

    async def run(self, broker_id: int, work: Coroutine[Any, Any, T]) -> T:
        """Run `work` on the broker's loop."""
        return await asyncio.wrap_future(self._threads[broker_id].submit(work))

    def call_soon(self, broker_id: int, callback: Callable[[], None]) -> None:
        self._threads[broker_id].call_soon(callback)

    async def end(self, broker_id: int) -> None:
        thread = self._threads.pop(broker_id)
        # Stopping the thread includes joining it, which must not block this loop, because the
        # broker's last calls run here.
        await asyncio.get_running_loop().run_in_executor(None, thread.stop)

    def stop(self, broker_id: int) -> ThreadPause:
        """Block the broker's loop, from any other thread. Raises ConfigError if the loop is already
        blocked, or TimeoutError if it is too busy.
        """
        if broker_id in self._standstills:
            raise ConfigError(
                f"broker {broker_id} is already paused; call resume({broker_id}) first"
            )
        return ThreadPause(self._threads[broker_id])

    def on_stopped(
        self, broker_id: int, pause: ThreadPause, session: EmbeddedSession, timeout_ms: int
    ) -> None:
        """Record that the broker's loop is blocked. The broker's session ends after `timeout_ms`,
        as it would on a server.
        """
        self._standstills[broker_id] = _Standstill(pause, session, timeout_ms)

    def go_on(self, broker_id: int) -> None:
        """End a pause. Do nothing if the broker is not paused."""
        standstill = self._standstills.pop(broker_id, None)
        if standstill is not None:
            standstill.end()
