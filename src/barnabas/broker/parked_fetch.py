"""A fetch that found too little and waits: one object, listed at each of its partitions."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from barnabas.broker.replica import Replica


class ParkedFetch:
    """Waits for `missing_bytes` more at any of its partitions, or for the time to be over.

    It does not read: whoever parked it reads again when `wait` returns, since by then the bytes
    may be gone (a topic deleted) or more than was told.
    """

    __slots__ = ("_future", "_missing_bytes", "_replicas")

    def __init__(self, replicas: Sequence[Replica], missing_bytes: int) -> None:
        self._replicas = replicas
        self._missing_bytes = missing_bytes
        self._future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        for replica in replicas:
            replica.park(self)

    def told(self, appended_bytes: int) -> None:
        """Bytes became visible at one of the partitions."""
        self._missing_bytes -= appended_bytes
        if self._missing_bytes <= 0:
            self.wake()

    def wake(self) -> None:
        """Enough, or something changed that the reader must see (leadership, deletion)."""
        if not self._future.done():
            self._future.set_result(None)

    async def wait(self, max_wait_ms: int) -> None:
        """Return when woken or after `max_wait_ms`."""
        timer = asyncio.get_running_loop().call_later(max_wait_ms / 1000, self.wake)
        try:
            await self._future
        finally:
            timer.cancel()
            for replica in self._replicas:
                replica.unpark(self)
