"""A simulated ZooKeeper: one order of commits, and servers that follow it, each in its own time.

A commit is decided as soon as it reaches a server; the other servers, and what is read and watched
there, may be behind. A session sees its own commits, and nothing older than it has seen: its server
catches up with each of its commits, and when it connects. A session that is silent for its timeout
is over, whether or not its owner knows: its ephemeral nodes are removed in one commit.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from contextvars import Context, copy_context
from random import Random

from barnabas.cluster.nodes import Stage, Tree
from barnabas.cluster.store import Delete, Operation, Znode
from barnabas.errors import ConfigError
from simulation.whole.lives import Life
from simulation.whole.store_link import Lane, Link, Timing
from simulation.whole.store_session import SimSession

SESSION_TIMEOUT_MS = 6000
_SERVERS = 3


class StoreServer:
    """One server: the tree as far as the server knows it, and the links that watch the tree
    there.
    """

    __slots__ = ("_behind", "_touched", "_watches", "tree")

    def __init__(self) -> None:
        self.tree = Tree()
        self._behind: deque[Stage] = deque()
        self._touched: dict[str, int] = {}
        self._watches: dict[str, dict[Link, None]] = {}

    def note(self, stage: Stage) -> None:
        """Queue a commit that the server will learn of."""
        self._behind.append(stage)

    def learn(self) -> None:
        """Apply the next commit, if the server has not already done so."""
        if self._behind:
            self._apply(self._behind.popleft())

    def catch_up(self) -> None:
        while self._behind:
            self.learn()

    def read_many(self, paths: Sequence[str]) -> list[Znode | None]:
        return [self.tree.read(path) for path in paths]

    def watch(self, link: Link, path: str) -> int:
        """Notify the link of the next change; returns the number of the commit that made the
        last change."""
        self._watches.setdefault(path, {})[link] = None
        return self._touched.get(path, 0)

    def _apply(self, stage: Stage) -> None:
        self.tree.merge(stage)
        for path in stage.nodes:
            self._touched[path] = stage.zxid
            for link in self._watches.pop(path, ()):
                if link.is_served:
                    link.back.send(link.on_change, path)


class Observer:
    """What may watch the decided state, in the order of the commits. By default it does nothing."""

    def opened(self, session_id: int, life: Life | None) -> None:
        """Handle the beginning of the session of a process."""

    def closes(self, session_id: int) -> None:
        """Handle the end of a session at its own request, before its nodes are removed."""

    def commits(self, session_id: int, operations: Sequence[Operation], stage: Stage) -> None:
        """Handle a commit, immediately before it is merged."""

    def answered(self, operations: Sequence[Operation]) -> None:
        """Handle the arrival of the answer to a commit at the process that asked for it."""


class Held:
    """A session as the servers know it."""

    __slots__ = ("heard_at", "link", "look", "session_id", "timeout_ms")

    def __init__(self, session_id: int, timeout_ms: int, link: Link) -> None:
        self.session_id = session_id
        self.timeout_ms = timeout_ms
        self.link = link
        self.heard_at = asyncio.get_running_loop().time()
        self.look: asyncio.TimerHandle | None = None

    def ends_at(self) -> float:
        return self.heard_at + self.timeout_ms / 1000


class SimStore:
    """All servers together. What the store does by itself belongs to the world, not to any life."""

    def __init__(self, random: Random, timing: Timing | None = None) -> None:
        self.tree = Tree()
        """The decided state."""
        self._random = random
        self._timing = timing or Timing()
        self._world = Context()
        self._servers = [StoreServer() for _ in range(_SERVERS)]
        self._sessions: dict[int, Held] = {}
        self._last_session_id = 0
        self._is_running = True
        self.observer = Observer()

    # --- sessions --------------------------------------------------------------------------------

    def session(self, timeout_ms: int = SESSION_TIMEOUT_MS) -> SimSession:
        """Start a session; its callbacks run in the context in which this is called.

        Raises ConfigError if the store is down, since a broker then finds no store.
        """
        if not self._is_running:
            raise ConfigError("no ZooKeeper answers")
        return SimSession(self, timeout_ms, copy_context())

    def connect(self, session: SimSession, context: Context) -> tuple[Link, StoreServer]:
        """Begin a connection: nothing has been sent over it."""
        there = Lane(self._world, self._random, self._timing)
        back = Lane(context, self._random, self._timing)
        link = Link(there, back, session.changed, session.disconnected)
        return link, self._random.choice(self._servers)

    def accept(self, link: Link, server: StoreServer, session_id: int, timeout_ms: int) -> int:
        """Serve a session over a connection, or a new session for id 0; returns 0 if the session
        is over."""
        if session_id:
            held = self._sessions.get(session_id)
            if held is None:
                return 0
            held.link.drop()
            held.link = link
            self.heard(session_id)
        else:
            self._last_session_id += 1
            session_id = self._last_session_id
            held = self._sessions[session_id] = Held(session_id, timeout_ms, link)
            self._look_later(held)
            self.observer.opened(session_id, link.back.life)
        server.catch_up()
        return session_id

    def turns_away(self, link: Link) -> bool:
        """Return whether no server is running that could accept the connection, and break it if
        so."""
        if not self._is_running:
            link.drop()
        return not self._is_running

    def heard(self, session_id: int) -> None:
        """Record that the session is alive."""
        held = self._sessions.get(session_id)
        if held is not None:
            held.heard_at = asyncio.get_running_loop().time()

    def commit(
        self, session_id: int, server: StoreServer, operations: Sequence[Operation]
    ) -> list[str | int]:
        """Commit now. Raises MetadataError."""
        self.heard(session_id)
        server.catch_up()
        results = self._commit(session_id, operations)
        server.catch_up()
        return results

    def leave(self, session_id: int) -> None:
        """End a session at its own request; one more answer will come over its connection."""
        if self._sessions.pop(session_id, None) is not None:
            self.observer.closes(session_id)
            self._remove_ephemerals(session_id)

    # --- what befalls them -----------------------------------------------------------------------

    def expire(self, session_id: int) -> None:
        """End a session from the servers' side."""
        held = self._sessions.pop(session_id, None)
        if held is not None:
            held.link.drop()
            self._remove_ephemerals(session_id)

    def stop(self) -> None:
        """Stop all servers: every connection breaks, and no session gets older."""
        self._is_running = False
        for held in self._sessions.values():
            held.link.drop()

    def start(self) -> None:
        """Restart the servers with everything that was decided; every session has its full
        timeout again."""
        self._is_running = True
        for server in self._servers:
            server.catch_up()
        for held in self._sessions.values():
            self.heard(held.session_id)
            self._look_later(held)

    # --- the rest --------------------------------------------------------------------------------

    def _commit(self, session_id: int, operations: Sequence[Operation]) -> list[str | int]:
        stage = self.tree.stage(operations, session_id)
        if stage.effects:
            self.observer.commits(session_id, operations, stage)
            self.tree.merge(stage)
            loop = asyncio.get_running_loop()
            for server in self._servers:
                server.note(stage)
                if self._timing.lag_ms:
                    delay_s = self._random.random() * self._timing.lag_ms / 1000
                    loop.call_later(delay_s, server.learn, context=self._world)
                else:
                    server.learn()
        return stage.results

    def _remove_ephemerals(self, session_id: int) -> None:
        gone = self.tree.ephemeral_paths(session_id)
        if gone:
            self._commit(session_id, [Delete(path) for path in gone])

    def _look_later(self, held: Held) -> None:
        if held.look is not None:
            held.look.cancel()
        loop = asyncio.get_running_loop()
        held.look = loop.call_at(held.ends_at(), self._look, held, context=self._world)

    def _look(self, held: Held) -> None:
        if not self._is_running or held.session_id not in self._sessions:
            return
        if asyncio.get_running_loop().time() < held.ends_at():
            self._look_later(held)
        else:
            self.expire(held.session_id)
