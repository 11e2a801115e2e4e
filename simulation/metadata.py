"""The metadata store of a simulated cluster: one tree, with a session for each broker.

Reads are answered immediately, and commits after a while. If the answer to a commit is lost, its
outcome is unknown. A session that is silent for its timeout expires, and its ephemeral nodes are
removed; the broker learns of this when it is back, and of a new session before its controller does.
A watch fires late and only once, for all changes up to then.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from barnabas.cluster.nodes import Effect, Stage, Tree
from barnabas.cluster.store import (
    Delete,
    MetadataError,
    MetadataStore,
    Operation,
    OutcomeUnknown,
    SessionExpired,
    SessionState,
    Znode,
)
from simulation.world import Life, Promise, World

_WATCH_MS = 60
_SLOW_WATCH_MS = 900


class CommitListener(Protocol):
    """Checks every commit; `session_id` is the session that made it."""

    def committed(self, session_id: int, effects: Sequence[Effect], tree: Tree) -> None: ...


class Ensemble:
    """All servers, as a single one that does not fail; the connections to it do."""

    __slots__ = ("_watches", "is_flaky", "listener", "next_session_id", "tree", "world")

    def __init__(self, world: World, listener: CommitListener) -> None:
        self.world = world
        self.tree = Tree()
        self.listener = listener
        self.is_flaky = False
        self.next_session_id = 1
        self._watches: dict[str, list[tuple[Session, Callable[[], None]]]] = {}

    def do(self, operations: Sequence[Operation], session_id: int) -> list[str | int]:
        """Commit immediately. Raises MetadataError."""
        stage = self.tree.stage(operations, session_id)
        if stage.effects:
            self.tree.merge(stage)
            self.listener.committed(session_id, stage.effects, self.tree)
            self._fire(stage)
        return stage.results

    def expire(self, session_id: int) -> None:
        """End the session: its nodes are removed in one commit."""
        gone = self.tree.ephemeral_paths(session_id)
        if gone:
            self.do([Delete(path) for path in gone], session_id)

    def watch(self, session: Session, path: str, callback: Callable[[], None]) -> None:
        watchers = self._watches.setdefault(path, [])
        if (session, callback) not in watchers:
            watchers.append((session, callback))

    def _fire(self, stage: Stage) -> None:
        for path in stage.nodes:
            for session, callback in self._watches.pop(path, ()):
                limit_ms = _SLOW_WATCH_MS if self.world.chance(0.1) else _WATCH_MS
                delay_ms = int(self.world.random.random() * limit_ms)
                self.world.at(delay_ms, session.life, session.changed, callback)


class Session(MetadataStore):
    """One broker's client of the store, with all the sessions of one life."""

    __slots__ = (
        "_cuts",
        "_ensemble",
        "_listeners",
        "_missed",
        "_session_id",
        "_silences",
        "_silent_since_ms",
        "life",
        "timeout_ms",
    )

    def __init__(self, ensemble: Ensemble, life: Life, timeout_ms: int) -> None:
        self._ensemble = ensemble
        self.life = life
        self.timeout_ms = timeout_ms
        self._listeners: list[Callable[[SessionState], None]] = []
        self._cuts = 0
        self._silences = 0
        self._missed: list[Callable[[], None]] = []
        self._silent_since_ms = -1
        self._session_id = 0
        self._open()

    @property
    def session_id(self) -> int:
        return self._session_id

    @property
    def session_state(self) -> SessionState:
        if self._session_id < 0:
            return SessionState.EXPIRED
        return SessionState.SUSPENDED if self._cuts else SessionState.CONNECTED

    def on_session(self, callback: Callable[[SessionState], None]) -> None:
        """Register a callback for two states: a session that expired, which is reported later than
        the seam promises so that zombies can occur, and a session that is reconnected."""
        self._listeners.append(callback)

    async def read(self, path: str) -> Znode | None:
        if self._cuts:
            raise OutcomeUnknown(path, "the metadata store is out of reach")
        return self._ensemble.tree.read(path)

    async def read_many(self, paths: Sequence[str]) -> list[Znode | None]:
        return [await self.read(path) for path in paths]

    async def commit(self, operations: Sequence[Operation]) -> list[str | int]:
        promise: Promise[list[str | int]] = Promise()
        world = self._ensemble.world
        delay_ms = 1 + int(world.random.random() * 8)
        if self._cuts:
            unknown = OutcomeUnknown(operations[0].path, "the metadata store is out of reach")
            world.at(200, self.life, promise.fail, unknown)
        else:
            session_id = self._session_id
            world.at(delay_ms, None, self._arrived, session_id, tuple(operations), promise)
        return await promise

    def watch(self, path: str, callback: Callable[[], None]) -> None:
        self._ensemble.watch(self, path, callback)

    async def close(self) -> None:
        """End the session immediately."""
        self._ensemble.expire(self._session_id)
        self._session_id = -1

    def changed(self, callback: Callable[[], None]) -> None:
        """Fire a watch; while the store is out of reach, the watch waits."""
        if self._cuts:
            self._missed.append(callback)
        else:
            callback()

    def silent(self) -> None:
        """Record that the servers no longer receive anything from it: it was killed, paused or
        cut off."""
        self._silences += 1
        if self._silences == 1:
            world = self._ensemble.world
            self._silent_since_ms = world.now_ms
            world.at(self.timeout_ms, None, self._look, world.now_ms, self._session_id)

    def reachable(self) -> None:
        """Remove one reason for silence."""
        self._silences -= 1
        if self._silences or self.life.is_over:
            return
        self._silent_since_ms = -1
        is_over = self._session_id < 0
        if is_over:
            self._renew()
        missed, self._missed = self._missed, []
        for callback in missed:
            callback()
        if not is_over:
            self._tell(SessionState.CONNECTED)

    def cut_off(self) -> None:
        """Cut the process off from the servers while it goes on."""
        self._cuts += 1
        self.silent()

    def reconnect(self) -> None:
        self._cuts -= 1
        self.reachable()

    def expire(self) -> None:
        """Make the servers end the session, for whatever reason."""
        if self._session_id > 0:
            self._ensemble.expire(self._session_id)
            self._session_id = -1
            if not self._silences:
                self._renew()

    def _renew(self) -> None:
        """Open a new session; users of the old one are notified a little later."""
        self._open()
        world = self._ensemble.world
        world.at(int(world.random.random() * 300), self.life, self._tell, SessionState.EXPIRED)

    def _tell(self, state: SessionState) -> None:
        for callback in self._listeners:
            callback(state)

    def _open(self) -> None:
        self._session_id = self._ensemble.next_session_id
        self._ensemble.next_session_id += 1

    def _look(self, since_ms: int, session_id: int) -> None:
        if self._silent_since_ms == since_ms and self._session_id == session_id:
            self._ensemble.expire(session_id)
            self._session_id = -1

    def _arrived(
        self, session_id: int, operations: tuple[Operation, ...], promise: Promise[list[str | int]]
    ) -> None:
        world, ensemble = self._ensemble.world, self._ensemble
        path = operations[0].path
        is_lost = self._cuts or (ensemble.is_flaky and world.chance(0.2))
        delay_ms = 1 + int(world.random.random() * 8)
        if is_lost and world.chance(0.5):
            unknown = OutcomeUnknown(path, "the connection broke before the commit arrived")
            world.at(delay_ms, self.life, promise.fail, unknown)
            return
        if session_id < 0 or session_id != self._session_id:
            expired = SessionExpired(path, "the session has expired")
            world.at(delay_ms, self.life, promise.fail, expired)
            return
        try:
            results = ensemble.do(operations, session_id)
        except MetadataError as error:
            world.at(delay_ms, self.life, promise.fail, error)
            return
        if is_lost:
            unknown = OutcomeUnknown(path, "the connection broke before the answer came")
            world.at(delay_ms, self.life, promise.fail, unknown)
            return
        world.at(delay_ms, self.life, promise.resolve, results)
