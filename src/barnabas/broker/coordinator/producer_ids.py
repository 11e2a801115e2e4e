"""This broker's block of producer ids: taken from the metadata store, handed out one by one.

An id is never handed out twice in the life of a cluster: a block is taken by a conditional write
before its first id is used, and what is left of it at a stop is lost. So is a block of which the
store did not say whether it was taken.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from barnabas.errors import CoordinatorLoadInProgress, NotController
from barnabas.shielded import retrieve_error, shielded

_PATIENCE_S = 1.0  # what else a client asks waits behind this


class ProducerIds:
    """Hands out producer ids."""

    __slots__ = ("_end", "_next", "_take_block", "_taking")

    def __init__(self, take_block: Callable[[], Awaitable[tuple[int, int]]]) -> None:
        """`take_block` returns the first and the last id of a new block; raises NotController."""
        self._take_block = take_block
        self._next = 0
        self._end = 0  # exclusive
        self._taking: asyncio.Task[None] | None = None

    def next(self) -> int | None:
        """The next id of the block at hand, or None when a new block has to be taken."""
        if self._next >= self._end:
            return None
        producer_id = self._next
        self._next += 1
        return producer_id

    async def next_from_new_block(self) -> int:
        """The next id, after taking a block if none is left: one for all who wait.

        Raises CoordinatorLoadInProgress, as Kafka does since old producers take any other error for
        final, if the metadata store does not answer soon; the block is waited for all the same.
        """
        deadline = asyncio.get_running_loop().time() + _PATIENCE_S
        # A loop: others that waited may have taken all of a block.
        while (producer_id := self.next()) is None:
            if self._taking is None:
                self._taking = asyncio.get_running_loop().create_task(self._take())
                self._taking.add_done_callback(self._taken)
            try:
                async with asyncio.timeout_at(deadline):
                    await shielded(self._taking)
            except (TimeoutError, NotController) as error:
                why = str(error) or "the metadata store is waited for"
                raise CoordinatorLoadInProgress(f"no producer ids are left: {why}") from error
        return producer_id

    async def _take(self) -> None:
        first, last = await self._take_block()
        self._next, self._end = first, last + 1

    def _taken(self, taking: asyncio.Task[None]) -> None:
        self._taking = None
        retrieve_error(taking)  # no request may be left that awaits it
