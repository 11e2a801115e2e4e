"""This broker's block of producer ids: taken from the metadata store, handed out one by one.

An id is never handed out twice in the life of a cluster: a block is taken by a conditional write
before its first id is used, and the ids left at a stop are lost. So is a block if the store did not
say whether it was taken.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from barnabas.errors import CoordinatorLoadInProgress, NotController
from barnabas.shielded import retrieve_error, shielded

_PATIENCE_S = 1.0  # a client's other requests wait behind this


class ProducerIds:
    """Hands out producer ids."""

    __slots__ = ("_end", "_next", "_take_block", "_taking")

    def __init__(self, take_block: Callable[[], Awaitable[tuple[int, int]]]) -> None:
        """`take_block` returns the first and last id of a new block, or raises NotController."""
        self._take_block = take_block
        self._next = 0
        self._end = 0  # exclusive
        self._taking: asyncio.Task[None] | None = None

    def next(self) -> int | None:
        """Return the next id of the present block, or None when a new block must be taken."""
        if self._next >= self._end:
            return None
        producer_id = self._next
        self._next += 1
        return producer_id

    async def next_from_new_block(self) -> int:
        """Return the next id; if none is left, take one block for all waiting callers.

        If the metadata store does not answer soon, this raises CoordinatorLoadInProgress, as Kafka
        does, because old producers treat any other error as final; the block is still taken when it
        comes.
        """
        deadline = asyncio.get_running_loop().time() + _PATIENCE_S
        # A loop, because other waiting callers may have taken a whole block.
        while (producer_id := self.next()) is None:
            if self._taking is None:
                self._taking = asyncio.get_running_loop().create_task(self._take())
                self._taking.add_done_callback(self._taken)
            try:
                async with asyncio.timeout_at(deadline):
                    await shielded(self._taking)
            except (TimeoutError, NotController) as error:
                why = str(error) or "waiting for the metadata store"
                raise CoordinatorLoadInProgress(f"no producer ids are available: {why}") from error
        return producer_id

    async def _take(self) -> None:
        first, last = await self._take_block()
        self._next, self._end = first, last + 1

    def _taken(self, taking: asyncio.Task[None]) -> None:
        self._taking = None
        retrieve_error(taking)  # there may be no request left that awaits it
