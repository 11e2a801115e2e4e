"""Who is to be told of what happens in one partition: parked fetches, and sessions' partitions."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from barnabas.broker.fetching.parked_fetch import Watcher


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

    def requested_at_ms(self, replica_id: int) -> int | None:
        """When a replica's session that has this partition had its last request; None: no such."""
        times = (watcher.requested_at_ms(replica_id) for watcher in self._all)
        return max((time for time in times if time is not None), default=None)

    def notify(self, more_bytes: int) -> None:
        """There are more bytes to be read; none, and nobody is woken, but sessions look here when
        they are asked next."""
        for watcher in list(self._all):
            watcher.notify(more_bytes)

    def wake(self) -> None:
        """Something changed that readers must see at once."""
        for watcher in list(self._all):
            watcher.wake()
