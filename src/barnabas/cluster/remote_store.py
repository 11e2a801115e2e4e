"""Implements what all metadata stores on servers have in common, such as successive sessions.

A read is retried until a response arrives or the session ends. The end of a session is reported
once, as EXPIRED. The next session begins automatically and is reported as CONNECTED. The
communication with the servers is implemented by subclasses.
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Callable, Sequence

from barnabas.cluster.session_store import SessionStore
from barnabas.cluster.store import SessionExpired, SessionState, Znode
from barnabas.cluster.watches import Watches
from barnabas.shielded import shielded

_NODES_PER_READ = 500  # at most 1 MiB, with paths of up to 300 bytes


class RemoteStore(SessionStore):
    """Manages successive sessions. Reads and watches wait until there is a connection."""

    def __init__(self, state: SessionState) -> None:
        super().__init__(0, state)
        self._is_closed = False
        self._watches = Watches(self._set_watch)
        self._changed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def read(self, path: str) -> Znode | None:
        return (await self.read_many([path]))[0]

    async def read_many(self, paths: Sequence[str]) -> list[Znode | None]:
        session_id = self._session_id
        nodes: list[Znode | None] = []
        for start in range(0, len(paths), _NODES_PER_READ):
            nodes += await self._read(paths[start : start + _NODES_PER_READ], session_id)
        return nodes

    def watch(self, path: str, callback: Callable[[], None]) -> None:
        is_connected = self._state is SessionState.CONNECTED
        self._watches.add(path, callback, is_connected=is_connected)

    @abstractmethod
    def give_up(self) -> None:
        """End the session and do not start another one.

        This can be called from any thread, because the ephemeral nodes must be removed even if the
        event loop is blocked.
        """

    @abstractmethod
    async def _read(self, paths: Sequence[str], session_id: int) -> list[Znode | None]:
        """Read nodes that fit into one request, and retry until a response arrives."""

    @abstractmethod
    def _set_watch(self, path: str, is_set: Callable[[object], None]) -> None:
        """Set a watch, as described in `SetWatch`."""

    async def _until_connected(self, session_id: int, path: str) -> None:
        """Wait for a connection in this session. Raises SessionExpired if it ends first."""
        while True:
            if self._is_closed:
                raise SessionExpired(path, "the metadata store is closed")
            # An operation begun in one session must not take effect in the next one, which would
            # then own its ephemeral nodes.
            if self._state is SessionState.EXPIRED or session_id != self._session_id:
                raise SessionExpired(path, "the session has expired")
            if self._state is SessionState.CONNECTED:
                return
            await shielded(self._changed)

    def _end(self) -> None:
        """Reject every call from now on."""
        self._is_closed = True
        self._state = SessionState.EXPIRED
        self._wake()

    def _wake(self) -> None:
        """Wake all tasks that are waiting for a new state."""
        changed, self._changed = self._changed, asyncio.get_running_loop().create_future()
        changed.set_result(None)
