"""Holds the watches of all connections, and finds those that a change fires. Pure.

A watch reports changes of the data and the existence of a node, or of its children. A one-shot
watch is fired once. A persistent one remains until it is removed; if it is recursive, it also
reports the changes of all descendants, but not the list of their children. A connection gets one
event per change, however many of its watches are fired.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from barnabas.zookeeper.codes import Event
from barnabas.zookeeper.tree import parent_of


class Watcher(Protocol):
    """A connection that receives events."""

    def notify(self, kind: int, path: str) -> None: ...


DATA, CHILDREN, PERSISTENT, RECURSIVE = "data", "children", "persistent", "recursive"

_ANSWERED_BY = {
    Event.CREATED: (DATA,),
    Event.DATA_CHANGED: (DATA,),
    Event.DELETED: (DATA, CHILDREN),
    Event.CHILDREN_CHANGED: (CHILDREN,),
}
_REMOVED_TYPES = {
    1: (CHILDREN, PERSISTENT, RECURSIVE),
    2: (DATA, PERSISTENT, RECURSIVE),
    3: (DATA, CHILDREN, PERSISTENT, RECURSIVE),
}


class Watches:
    """All watches, by kind and path. Watchers are kept in the order of their registration."""

    __slots__ = ("_by_kind", "_of_watcher")

    def __init__(self) -> None:
        self._by_kind: dict[str, dict[str, dict[Watcher, None]]] = {
            kind: {} for kind in (DATA, CHILDREN, PERSISTENT, RECURSIVE)
        }
        self._of_watcher: dict[Watcher, set[tuple[str, str]]] = {}

    def __len__(self) -> int:
        return sum(len(each) for each in self._of_watcher.values())

    @property
    def paths(self) -> int:
        """The number of paths with at least one watch."""
        return len({path for by_path in self._by_kind.values() for path in by_path})

    def add(self, kind: str, path: str, watcher: Watcher) -> None:
        self._by_kind[kind].setdefault(path, {})[watcher] = None
        self._of_watcher.setdefault(watcher, set()).add((kind, path))

    def count_of(self, watcher: Watcher) -> int:
        return len(self._of_watcher.get(watcher, ()))

    def paths_of(self, watcher: Watcher) -> list[str]:
        """Return the path of each watch of a connection."""
        return sorted(path for _, path in self._of_watcher.get(watcher, ()))

    def has(self, path: str, removed_type: int, watcher: Watcher) -> bool:
        """Return whether there is a watch of this type (ZooKeeper's WatcherType)."""
        own = self._of_watcher.get(watcher, ())
        return any((kind, path) in own for kind in _REMOVED_TYPES.get(removed_type, ()))

    def remove(self, path: str, removed_type: int, watcher: Watcher) -> None:
        for kind in _REMOVED_TYPES.get(removed_type, ()):
            if (kind, path) in self._of_watcher.get(watcher, ()):
                self._discard(kind, path, watcher)

    def remove_all(self, watcher: Watcher) -> None:
        """Remove the watches of a connection that has been closed."""
        for kind, path in list(self._of_watcher.get(watcher, ())):
            self._discard(kind, path, watcher)

    def fire(self, event: int, path: str) -> None:
        """Notify each connection that watches for this change, and remove its one-shot watches."""
        found: dict[Watcher, None] = {}
        for kind in _ANSWERED_BY[event]:
            for watcher in list(self._by_kind[kind].get(path, ())):
                self._discard(kind, path, watcher)
                found[watcher] = None
        found.update(self._by_kind[PERSISTENT].get(path, {}))
        recursive = self._by_kind[RECURSIVE]
        if recursive and event != Event.CHILDREN_CHANGED:
            for each in _path_and_ancestors(path):
                found.update(recursive.get(each, {}))
        for watcher in found:
            watcher.notify(event, path)

    def _discard(self, kind: str, path: str, watcher: Watcher) -> None:
        watchers = self._by_kind[kind][path]
        del watchers[watcher]
        if not watchers:
            del self._by_kind[kind][path]
        own = self._of_watcher[watcher]
        own.remove((kind, path))
        if not own:
            del self._of_watcher[watcher]


def _path_and_ancestors(path: str) -> Iterator[str]:
    yield path
    while path != "/":
        path = parent_of(path)
        yield path
