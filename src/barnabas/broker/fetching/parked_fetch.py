"""A fetch that found too little and waits: one object, told of what its partitions get."""

from __future__ import annotations

import asyncio
from typing import Protocol


class Watcher(Protocol):
    """What a replica tells of its changes: a parked fetch, or a partition of a fetch session."""

    def notify(self, appended_bytes: int) -> None:
        """Bytes became visible."""
        ...

    def wake(self) -> None:
        """Something changed that a reader must see at once (leadership, deletion)."""
        ...

    def requested_at_ms(self, replica_id: int) -> int | None:
        """When that replica asked last for what it has from here, though it had nothing new to
        say; None if it is another one's, or each of its requests says all."""
        ...


class ParkedFetch:
    """Waits for `missing_bytes` more at any of its partitions, or for the time to be over.

    It does not read: whoever parked it reads again when `wait` returns, since by then the bytes
    may be gone (a topic deleted) or more than was told.
    """

    __slots__ = ("_future", "_missing_bytes")

    def __init__(self, missing_bytes: int) -> None:
        self._missing_bytes = missing_bytes
        self._future: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def notify(self, appended_bytes: int) -> None:
        self._missing_bytes -= appended_bytes
        if self._missing_bytes <= 0:
            self.wake()

    def wake(self) -> None:
        if not self._future.done():
            self._future.set_result(None)

    def requested_at_ms(self, replica_id: int) -> int | None:
        return None

    async def wait(self, until: float) -> None:
        """Return when woken, or at that time of the loop."""
        timer = asyncio.get_running_loop().call_at(until, self.wake)
        try:
            await self._future
        finally:
            timer.cancel()
