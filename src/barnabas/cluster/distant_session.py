"""Provides a session in an embedded store to a broker whose event loop runs in another thread.

While a broker is paused, it receives no events, just like a client of a server. When it resumes, it
is notified that its session has ended, and then receives the events in their original order.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any, TypeVar

from barnabas.cluster.embedded_session import EmbeddedSession
from barnabas.cluster.session_store import SessionStore
from barnabas.cluster.store import Operation, SessionExpired, SessionState, Znode

T = TypeVar("T")


class DistantSession(SessionStore):
    """A session that is used on the broker's loop.

    This object and `session` are created on the store's loop.

    Invariant: an operation that was begun in a session fails once the session has ended, even if
    the broker has not yet been notified.
    """

    def __init__(self, session: EmbeddedSession, loop: asyncio.AbstractEventLoop) -> None:
        """Create a session for the broker's `loop`, which must run until `close` has returned."""
        super().__init__(session.session_id, session.session_state)
        self._session = session
        self._store_loop = asyncio.get_running_loop()
        self._loop = loop
        self._watches: dict[str, dict[Callable[[], None], None]] = {}
        self._is_closed = False  # set on the store's loop
        session.on_session(self._report)

    async def read(self, path: str) -> Znode | None:
        return await self._run_there(path, lambda: self._session.read(path))

    async def commit(self, operations: Sequence[Operation]) -> list[str | int]:
        path = operations[0].path if operations else "/"
        return await self._run_there(path, lambda: self._session.commit(operations))

    def watch(self, path: str, callback: Callable[[], None]) -> None:
        callbacks = self._watches.get(path)
        if callbacks is None:
            callbacks = self._watches[path] = {}
            self._store_loop.call_soon_threadsafe(self._watch_there, path)
        callbacks[callback] = None

    async def close(self) -> None:
        work = asyncio.run_coroutine_threadsafe(self._close_there(), self._store_loop)
        await asyncio.wrap_future(work)
        self._state = SessionState.EXPIRED

    async def _run_there(self, path: str, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run `work` on the store's loop, in the session that the broker believes is current."""
        if self._state is SessionState.EXPIRED:
            raise SessionExpired(path, "the session has expired")
        session_id = self._session_id

        async def call() -> T:
            # The session ended and the next one began while this call was being passed to the
            # store's loop.
            if self._session.session_id != session_id:
                raise SessionExpired(path, "the session has expired and a new one has started")
            return await work()

        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(call(), self._store_loop))

    # ---- on the store's loop ----

    def _watch_there(self, path: str) -> None:
        self._session.watch(path, partial(self._fire, path))

    def _fire(self, path: str) -> None:
        if not self._is_closed:
            self._loop.call_soon_threadsafe(self._on_changed, path, self._session.session_state)

    def _report(self, state: SessionState) -> None:
        if not self._is_closed:
            # Pass the values now, because they may have changed by the time the call runs.
            self._loop.call_soon_threadsafe(self._take_over, self._session.session_id, state)

    async def _close_there(self) -> None:
        self._is_closed = True  # from here on, the broker's loop may end
        await self._session.close()

    # ---- on the broker's loop again ----

    def _take_over(self, session_id: int, state: SessionState) -> None:
        self._session_id = session_id
        self._state = state
        self._notify()

    def _on_changed(self, path: str, state: SessionState) -> None:
        self._state = state  # callbacks fired by the end of a session see this state
        for callback in self._watches.pop(path, ()):
            callback()
