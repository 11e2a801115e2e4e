"""Who is to be told of what happens in one partition: parked fetches, and sessions' partitions."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from barnabas.broker.parked_fetch import Watcher


class Watchers:
    """A place to park at; those who wait for data, or for what is visible, have one each."""

    __slots__ = ("_all",)

    def __init__(self) -> None:
        self._all: dict[Watcher, None] = {}

    def __bool__(self) -> bool:
        return bool(self._all)

    def park(self, watcher: Watcher) -> None:
        self._all[watcher] = None

    def unpark(self, watcher: Watcher) -> None:
        self._all.pop(watcher, None)

    def told(self, more_bytes: int) -> None:
        """There are more bytes to be read; none, and nobody is woken, but sessions look here when
        they are asked next."""
        for watcher in list(self._all):
            watcher.told(more_bytes)

    def wake(self) -> None:
        """Something changed that readers must see at once."""
        for watcher in list(self._all):
            watcher.wake()
