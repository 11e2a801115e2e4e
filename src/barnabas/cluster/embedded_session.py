"""Provides additional sessions in an embedded store, so that several brokers can share a process.

A session is connected as soon as it is created. `close` and `expire` end it just as a server ends
the session of a client that has gone silent: the ephemeral nodes are removed, and operations that
were begun in the session no longer take effect. `reconnect` begins the next session.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from barnabas.cluster.session_store import SessionStore
from barnabas.cluster.store import (
    Operation,
    SessionExpired,
    SessionState,
    Znode,
)

if TYPE_CHECKING:
    from barnabas.cluster.embedded import EmbeddedStore


class EmbeddedSession(SessionStore):
    """A session created by `EmbeddedStore.session`.

    The store must not be closed before the session.
    """

    def __init__(self, store: EmbeddedStore) -> None:
        super().__init__(store.new_session_id(), SessionState.CONNECTED)
        self._store = store
        self._watches: dict[str, dict[Callable[[], None], None]] = {}

    async def read(self, path: str) -> Znode | None:
        self._check_session(path)
        return await self._store.read(path)

    async def commit(self, operations: Sequence[Operation]) -> list[str | int]:
        self._check_session(operations[0].path if operations else "/")
        return await self._store.commit_as(self._session_id, operations)

    def watch(self, path: str, callback: Callable[[], None]) -> None:
        callbacks = self._watches.get(path)
        if callbacks is None:
            callbacks = self._watches[path] = {}
            self._store.watch(path, partial(self._on_changed, path))
        callbacks[callback] = None

    def _on_changed(self, path: str) -> None:
        for callback in self._watches.pop(path, ()):
            callback()

    def expire(self) -> None:
        """Expire the session, as a server would. Its watches are fired immediately."""
        self._end()
        for path in list(self._watches):
            self._on_changed(path)
        self._notify()

    def reconnect(self) -> None:
        """Begin a new session to replace the one that has ended."""
        assert self._state is SessionState.EXPIRED, self._state
        self._session_id = self._store.new_session_id()
        self._state = SessionState.CONNECTED
        self._notify()

    async def close(self) -> None:
        if self._state is not SessionState.EXPIRED:
            self._end()

    def _end(self) -> None:
        self._state = SessionState.EXPIRED
        self._store.end_session(self._session_id)

    def _check_session(self, path: str) -> None:
        if self._state is SessionState.EXPIRED:
            raise SessionExpired(path, "the session has expired")
