"""The client of the simulated ZooKeeper: one session after another, as a broker has them.

A commit is sent once: it waits for a connection, and if that breaks before the answer its outcome
is unknown. A client that hears nothing for two thirds of the timeout gives up the connection and
tries others until the servers answer. The session then either lives on, or is over and the next one
begins.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextvars import Context
from typing import TYPE_CHECKING

from barnabas.cluster.remote_store import RemoteStore
from barnabas.cluster.store import Operation, OutcomeUnknown, SessionState, Znode
from simulation.whole.store_link import Broken, Link

if TYPE_CHECKING:
    from simulation.whole.store import SimStore, StoreServer

_FIRST_RETRY_MS = 50
_LAST_RETRY_MS = 1000


class SimulatedClient(RemoteStore):
    """What the clients of both simulated ZooKeepers have in common."""

    def _become(self, state: SessionState) -> None:
        self._state = state
        if state is SessionState.CONNECTED:
            self._watches.on_reconnected()
        elif state is SessionState.EXPIRED:
            self._watches.fire_all()
        self._wake()
        self._notify()


class SimSession(SimulatedClient):
    """A client made by `SimStore.session`, in the context of its owner."""

    def __init__(self, store: SimStore, timeout_ms: int, context: Context) -> None:
        super().__init__(SessionState.CONNECTED)
        self._store = store
        self._timeout_ms = timeout_ms
        self._context = context
        self._loop = asyncio.get_running_loop()
        self._trying: Link | None = None
        self._retry_ms = _FIRST_RETRY_MS
        self._is_cut = False
        self._is_given_up = False
        self._link, self._server = store.connect(self, context)
        self._session_id = store.accept(self._link, self._server, 0, timeout_ms)
        self._beat(self._link)

    async def commit(self, operations: Sequence[Operation]) -> list[str | int]:
        session_id = self._session_id
        path = operations[0].path if operations else "/"
        await self._until_connected(session_id, path)
        if not operations:
            return []
        asked = tuple(operations)
        answer = self._link.ask(self._store.commit, session_id, self._server, asked)
        try:
            results: list[str | int] = await answer
        except Broken:
            reason = "the connection broke before the answer came"
            raise OutcomeUnknown(path, reason) from None
        self._store.observer.answered(asked)
        return results

    async def close(self) -> None:
        if self._is_closed:
            return
        was_connected = self._state is SessionState.CONNECTED
        self._trying = None
        self._link.give_up_waiting()
        self._end()
        if was_connected:
            left = self._link.ask(self._store.leave, self._session_id)
            patience_s = self._timeout_ms / 3000
            # No client waits longer for servers that do not answer; they will notice by themselves.
            self._loop.call_later(patience_s, self._link.give_up_waiting, context=self._context)
            try:
                await left
            except Broken:
                return

    def give_up(self) -> None:
        """End the session, as `RemoteStore` does; the servers learn of it a little later."""
        self._is_given_up = True
        self._link.there.send(self._store.leave, self._session_id)
        if self._state is not SessionState.EXPIRED:
            self._loop.call_soon(self._become, SessionState.EXPIRED, context=self._context)

    def beat_by_itself(self) -> None:
        """Send one heartbeat, as a client does whose thread goes on while the broker's loop
        waits for a disk."""
        if not self._is_given_up and self._state is SessionState.CONNECTED:
            self._link.there.send(self._store.heard, self._session_id)
            self._link.heard_at = self._loop.time()

    # --- what befalls it -------------------------------------------------------------------------

    def cut(self) -> None:
        """Let nothing pass in either direction, without notifying either end."""
        self._is_cut = True
        for link in (self._link, self._trying):
            if link is not None:
                link.hold()

    def mend(self) -> None:
        """Let what was under way arrive, unless it has been given up."""
        self._is_cut = False
        for link in (self._link, self._trying):
            if link is not None:
                link.release()

    def reset(self) -> None:
        """Break the connection; what was under way to the servers may still arrive."""
        self._loop.call_soon(self.disconnected, self._link, context=self._context)

    # --- connections -----------------------------------------------------------------------------

    def disconnected(self, link: Link) -> None:
        """Handle the end of a connection."""
        link.give_up()
        if self._is_closed:
            return
        if link is self._trying:
            self._trying = None
            self._retry()
        elif link is self._link and self._state is SessionState.CONNECTED:
            self._become(SessionState.SUSPENDED)
            self._retry()

    def _beat(self, link: Link) -> None:
        """Send the servers a heartbeat, and notice if they do not answer."""
        if link is not self._link or self._state is not SessionState.CONNECTED:
            return
        if self._loop.time() - link.heard_at > self._timeout_ms * 2 / 3000:
            self.disconnected(link)
            return
        link.ask(self._store.heard, self._session_id)
        self._later(self._timeout_ms / 3, self._beat, link)

    def _retry(self) -> None:
        self._later(self._retry_ms, self._try)
        self._retry_ms = min(2 * self._retry_ms, _LAST_RETRY_MS, self._timeout_ms // 4)

    def _try(self) -> None:
        if self._is_closed or self._is_given_up:
            return
        link, server = self._store.connect(self, self._context)
        self._trying = link
        if self._is_cut:
            link.hold()
        session_id = 0 if self._state is SessionState.EXPIRED else self._session_id
        link.there.send(self._reach, link, server, session_id)
        self._later(self._timeout_ms / 3, self._give_up_trying, link)

    def _reach(self, link: Link, server: StoreServer, session_id: int) -> None:
        """Ask the server to accept the session."""
        if not self._store.turns_away(link):
            granted_id = self._store.accept(link, server, session_id, self._timeout_ms)
            link.back.send(self._reached, link, server, granted_id)

    def _give_up_trying(self, link: Link) -> None:
        if link is self._trying:
            # There never was a connection, so nothing may arrive over it.
            link.there.lose(is_all=True)
            self.disconnected(link)

    def _reached(self, link: Link, server: StoreServer, granted_id: int) -> None:
        if link is not self._trying:
            return
        self._trying = None
        if not granted_id:
            self._become(SessionState.EXPIRED)
            if not self._is_closed:
                self._try()
            return
        self._link, self._server, self._session_id = link, server, granted_id
        link.heard_at = self._loop.time()
        self._retry_ms = _FIRST_RETRY_MS
        self._become(SessionState.CONNECTED)
        self._beat(link)

    # --- requests --------------------------------------------------------------------------------

    async def _read(self, paths: Sequence[str], session_id: int) -> list[Znode | None]:
        while True:
            await self._until_connected(session_id, paths[0])
            try:
                found: list[Znode | None] = await self._link.ask(
                    self._server.read_many, tuple(paths)
                )
            except Broken:
                continue
            return found

    def _later(self, delay_ms: float, call: Callable[..., None], *arguments: object) -> None:
        self._loop.call_later(delay_ms / 1000, call, *arguments, context=self._context)

    # --- watches ---------------------------------------------------------------------------------

    def changed(self, path: str) -> None:
        """Fire a watch, as the server reports; this may be too late."""
        if not self._is_closed:
            self._watches.fire(path)

    def _set_watch(self, path: str, is_set: Callable[[object], None]) -> None:
        def on_answer(answer: asyncio.Future[int]) -> None:
            if answer.exception() is None and not self._is_closed:
                is_set(answer.result())

        answer = self._link.ask(self._server.watch, self._link, path)
        answer.add_done_callback(on_answer, context=self._context)
