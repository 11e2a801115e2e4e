"""Prefixes: a map of texts in which all keys are found that another text begins with.

    "a" <- "ab" <- "abc"      each key's parent is the longest other key that it begins with
         \\ "ad"

Of the keys that a name begins with the longest is the name's predecessor in sorted order or one of
that key's ancestors, and the others are its ancestors. So a search takes a bisection, and a step
per ancestor.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Generic, TypeVar

V = TypeVar("V")


class Prefixes(Generic[V]):
    """Values by prefix. Sorted again by the first search after a change."""

    __slots__ = ("_keys", "_parents", "_values")

    def __init__(self) -> None:
        self._values: dict[str, V] = {}
        self._keys: list[str] | None = None
        self._parents: list[int] = []

    def put(self, prefix: str, value: V) -> None:
        if prefix not in self._values:
            self._keys = None
        self._values[prefix] = value

    def remove(self, prefix: str) -> None:
        """Does nothing if there is no such prefix."""
        if self._values.pop(prefix, None) is not None:
            self._keys = None

    def of(self, name: str) -> list[V]:
        """The values of all prefixes of `name`, the longest first."""
        values = self._values
        if not values:
            return []
        keys = self._keys or self._sort()
        parents = self._parents
        at = bisect_right(keys, name) - 1
        while at >= 0 and not name.startswith(keys[at]):
            at = parents[at]
        found = []
        while at >= 0:
            found.append(values[keys[at]])
            at = parents[at]
        return found

    def _sort(self) -> list[str]:
        keys = self._keys = sorted(self._values)
        parents = self._parents = []
        ancestors: list[int] = []
        for at, key in enumerate(keys):
            while ancestors and not key.startswith(keys[ancestors[-1]]):
                ancestors.pop()
            parents.append(ancestors[-1] if ancestors else -1)
            ancestors.append(at)
        return keys
