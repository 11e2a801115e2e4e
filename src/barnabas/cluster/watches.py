"""Stores which paths are watched on a server, and their state when the watch was set.

A server forgets its watches when the connection ends. They are set again on the next connection. If
the state of a path is different by then, a change was missed.

Invariant: each callback is called once, either after a change or when the session ends. It may be
called although nothing has changed, and it does not learn what has changed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Protocol

Callback = Callable[[], None]

_UNKNOWN = object()  # differs from every state that a server reports


class SetWatch(Protocol):
    def __call__(self, path: str, is_set: Callable[[object], None]) -> None:
        """Request a watch from the server.

        `is_set` is called with the state of the path when the watch was set.

        If the connection is lost first, `is_set` is not called, and the watch is requested again on
        the next connection.
        """
        ...


class _Watched:
    """A path that is watched. `seen` is the last state reported by the server, if any."""

    __slots__ = ("callbacks", "seen")

    def __init__(self) -> None:
        self.callbacks: dict[Callback, None] = {}
        self.seen: object = None


class Watches:
    """Calls each callback once, when its path changes or the session ends."""

    def __init__(self, set_watch: SetWatch) -> None:
        self._set_watch = set_watch
        self._watched: dict[str, _Watched] = {}

    def add(self, path: str, callback: Callback, *, is_connected: bool) -> None:
        """Add a watch. It is set immediately or, if there is no connection, on the next one."""
        watched = self._watched.get(path)
        if watched is None:
            watched = self._watched[path] = _Watched()
            # Without a connection, the watch is set by `on_reconnected`.
            if is_connected:
                self._set(path, watched)
        watched.callbacks[callback] = None

    def on_reconnected(self) -> None:
        """Set all watches again, either in the same session or in a new one.

        If the previous state of a path is unknown, the path is treated as changed.
        """
        for path, watched in self._watched.items():
            # The connection was lost before the server responded, so the state may have changed
            # since.
            watched.seen = _UNKNOWN if watched.seen is None else watched.seen
            self._set(path, watched)

    def fire(self, path: str) -> None:
        """Call the callbacks of a path for which the server has reported a change."""
        watched = self._watched.pop(path, None)
        for callback in () if watched is None else watched.callbacks:
            callback()

    def fire_all(self) -> None:
        for path in list(self._watched):
            self.fire(path)

    def _set(self, path: str, watched: _Watched) -> None:
        self._set_watch(path, partial(self._is_set, path, watched))

    def _is_set(self, path: str, watched: _Watched, seen: object) -> None:
        before, watched.seen = watched.seen, seen
        # The path changed while there was no watch on it, so report a change.
        if before not in (None, seen) and self._watched.get(path) is watched:
            self.fire(path)
