"""Holds the clients' sessions, and decides when they expire. Pure.

A session belongs to the tree, not to a connection: a client that lost its connection, or whose
server was restarted, reconnects with the id and the password. It expires if nothing is heard from
the client for the timeout that was agreed on.
"""

from __future__ import annotations

from collections.abc import Iterator

PASSWORD_BYTES = 16


class Session:
    """A session. Its deadline is on the monotonic clock."""

    __slots__ = ("deadline_s", "password", "session_id", "timeout_ms")

    def __init__(self, session_id: int, timeout_ms: int, password: bytes) -> None:
        self.session_id = session_id
        self.timeout_ms = timeout_ms
        self.password = password
        self.deadline_s = 0.0

    def touch(self, now_s: float) -> None:
        """Postpone the expiry, because the client has sent something."""
        self.deadline_s = now_s + self.timeout_ms / 1000


class Sessions:
    """The live sessions by id."""

    __slots__ = ("_last_id", "_max_timeout_ms", "_min_timeout_ms", "by_id")

    def __init__(self, min_timeout_ms: int, max_timeout_ms: int) -> None:
        self._min_timeout_ms = min_timeout_ms
        self._max_timeout_ms = max_timeout_ms
        self._last_id = 0
        self.by_id: dict[int, Session] = {}

    def begin_after(self, session_id: int) -> None:
        """Give new sessions only ids greater than this one."""
        self._last_id = max(self._last_id, session_id)

    def new_id(self) -> int:
        self._last_id += 1
        return self._last_id

    def timeout_for(self, wanted_ms: int) -> int:
        """Return the timeout that a client gets if it asks for this one."""
        return min(max(wanted_ms, self._min_timeout_ms), self._max_timeout_ms)

    def open(self, session: Session) -> None:
        self.by_id[session.session_id] = session
        self.begin_after(session.session_id)

    def close(self, session_id: int) -> None:
        self.by_id.pop(session_id, None)

    def find(self, session_id: int, password: bytes) -> Session | None:
        """Return the live session with this id and password."""
        session = self.by_id.get(session_id)
        return session if session is not None and session.password == password else None

    def touch_all(self, now_s: float) -> None:
        """Give every session its whole timeout, because the server has just started."""
        for session in self.by_id.values():
            session.touch(now_s)

    def postpone(self, seconds: float) -> None:
        """Postpone every expiry, because the server itself did not run for this time."""
        for session in self.by_id.values():
            session.deadline_s += seconds

    def past_deadline(self, now_s: float) -> Iterator[int]:
        """Yield the ids of the sessions whose deadline has passed."""
        for session in list(self.by_id.values()):
            if session.deadline_s <= now_s:
                yield session.session_id
