"""A fetch that found too few bytes and waits: one object, notified of what its partitions get."""

from __future__ import annotations

import asyncio


class ParkedFetch:
    """Waits for `missing_bytes` more at any of its partitions, or for the time to be over.

    It does not read: the fetch reads again when `wait` returns, since by then the bytes may be gone
    (a topic deleted), or more than notified.
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
        """Return when woken, or at `until`, in seconds of the loop's time."""
        timer = asyncio.get_running_loop().call_at(until, self.wake)
        try:
            await self._future
        finally:
            timer.cancel()
