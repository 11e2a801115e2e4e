"""Which paths are watched on a server, and what there was when each watch was set.

A server's own watches die with the connection. So they are set again on the next one, and what has
changed meanwhile is seen from what the server then says there is.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Protocol

Callback = Callable[[], None]

_UNKNOWN = object()  # equal to nothing that a server says


class SetWatch(Protocol):
    def __call__(self, path: str, is_set: Callable[[object], None]) -> None:
        """Ask the server for a watch; `is_set` hears what there was when it was set.

        If the connection goes before that it hears nothing: the next one has the next attempt.
        """
        ...


class _Watched:
    """A path somebody waits for. `seen` is None until the server has said what there is."""

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
        """Without a connection the watch is set as soon as there is one."""
        watched = self._watched.get(path)
        if watched is None:
            watched = self._watched[path] = _Watched()
            if is_connected:
                self._set(path, watched)
        watched.callbacks[callback] = None

    def reconnected(self) -> None:
        """Set all of them again, in the same session or in the next one.

        Where it was not heard what there was, it counts as changed.
        """
        for path, watched in self._watched.items():
            watched.seen = _UNKNOWN if watched.seen is None else watched.seen
            self._set(path, watched)

    def fire(self, path: str) -> None:
        """The server says that something has changed there."""
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
        if before not in (None, seen) and self._watched.get(path) is watched:
            self.fire(path)
