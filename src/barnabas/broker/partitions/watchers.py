"""Parked fetches and partitions of fetch sessions that wait for what happens in one partition."""

from __future__ import annotations

from typing import Protocol


class Watcher(Protocol):
    """Is notified of a replica's changes: a parked fetch, or a partition of a session."""

    def notify(self, appended_bytes: int) -> None:
        """Count bytes that can be read now."""
        ...

    def wake(self) -> None:
        """Something changed that a reader must see at once (leadership, deletion)."""
        ...

    def requested_at_ms(self, replica_id: int) -> int | None:
        """When that replica's session had its last request; None if it is another replica's, or
        if each of its requests names all partitions."""
        ...


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
        """There are more bytes to be read; 0 wakes no request, but sessions look here at their
        next one."""
        # A copy: a watcher that is woken may unpark itself.
        for watcher in list(self._all):
            watcher.notify(more_bytes)

    def wake(self) -> None:
        """Something changed that readers must see at once."""
        for watcher in list(self._all):
            watcher.wake()
