"""Which paths are watched in ZooKeeper, and what they were when the watch was set.

ZooKeeper's own watches die with the connection. So they are set again on the next one, and what
has changed meanwhile is seen from the numbers of the commits that made, wrote and filled the node
last. A watch is set by two requests, one for existence and data and one for children; requests of
one connection are carried out in their order, so a read that is sent later misses nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

from kazoo.protocol import serialization as wire  # type: ignore[import-untyped]

from barnabas.cluster.zookeeper_connection import Connection, forget
from barnabas.cluster.zookeeper_requests import under

Callback = Callable[[], None]

_Seen = tuple[int, int, int]
_NOTHING: _Seen = (0, 0, 0)  # of a node that is not there
_UNKNOWN: _Seen = (-1, -1, -1)


class _Watched:
    """A path somebody waits for. `seen` is None until ZooKeeper has said what there is."""

    __slots__ = ("callbacks", "seen")

    def __init__(self) -> None:
        self.callbacks: dict[Callback, None] = {}
        self.seen: _Seen | None = None


class Watches:
    """Fires each callback once: on a change, or when the session ends."""

    def __init__(self, connection: Connection, chroot: str) -> None:
        self._connection = connection
        self._chroot = chroot
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
            watched.seen = watched.seen or _UNKNOWN
            self._set(path, watched)

    def fire_all(self) -> None:
        for path in list(self._watched):
            self._fire(path)

    def _set(self, path: str, watched: _Watched) -> None:
        whole = under(self._chroot, path)
        watcher = self._connection.watcher(path, self._fire)
        existence = self._connection.send(wire.Exists(whole, watcher))
        existence.add_done_callback(partial(self._is_set, path, watched))
        children = self._connection.send(wire.GetChildren(whole, watcher))
        children.add_done_callback(forget)  # a node that is not there has none

    def _is_set(self, path: str, watched: _Watched, answer: asyncio.Future[Any]) -> None:
        if answer.cancelled() or answer.exception() is not None:
            return  # cut off again: the next connection has the next attempt
        stat = answer.result()
        seen = _NOTHING if stat is None else (stat.czxid, stat.mzxid, stat.pzxid)
        before, watched.seen = watched.seen, seen
        if before not in (None, seen) and self._watched.get(path) is watched:
            self._fire(path)

    def _fire(self, path: str) -> None:
        watched = self._watched.pop(path, None)
        for callback in () if watched is None else watched.callbacks:
            callback()
