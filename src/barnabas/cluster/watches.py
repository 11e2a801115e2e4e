"""Stores the watched paths on a server, and each path's state when its watch was set.

A server's own watches end with the connection. They are therefore set again on the next connection,
where a different state reveals a missed change.

Invariant: each callback is called once, after a change or at the end of the session. It may be
called without a change, and is not told what has changed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Protocol

Callback = Callable[[], None]

_UNKNOWN = object()  # not equal to any state from a server


class SetWatch(Protocol):
    def __call__(self, path: str, is_set: Callable[[object], None]) -> None:
        """Request a watch from the server; `is_set` is called with the state at that time.

        If the connection is lost first, it is not called: the next connection tries again.
        """
        ...


class _Watched:
    """A watched path. `seen` is its last state from the server, if any."""

    __slots__ = ("callbacks", "seen")

    def __init__(self) -> None:
        self.callbacks: dict[Callback, None] = {}
        self.seen: object = None


class Watches:
    """Fires each callback once: on a change, or when the session ends."""

    def __init__(self, set_watch: SetWatch) -> None:
        self._set_watch = set_watch
        self._watched: dict[str, _Watched] = {}

    def add(self, path: str, callback: Callback, *, is_connected: bool) -> None:
        """Add a watch. It is set immediately, or with the next connection."""
        watched = self._watched.get(path)
        if watched is None:
            watched = self._watched[path] = _Watched()
            # If there is no connection, `on_reconnected` sets it.
            if is_connected:
                self._set(path, watched)
        watched.callbacks[callback] = None

    def on_reconnected(self) -> None:
        """Set all watches again, in the same session or the next one.

        A path counts as changed if its former state is unknown.
        """
        for path, watched in self._watched.items():
            # The connection was lost before the response, so the state may have changed.
            watched.seen = _UNKNOWN if watched.seen is None else watched.seen
            self._set(path, watched)

    def fire(self, path: str) -> None:
        """Fire a path's callbacks: the server has reported a change."""
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
        # The path changed while no watch was set, so report the change.
        if before not in (None, seen) and self._watched.get(path) is watched:
            self.fire(path)
