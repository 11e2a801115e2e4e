"""Allocates producer ids from blocks that this broker obtains from the metadata store.

No id is ever allocated twice in a cluster, because a block is claimed by a conditional write before
any of its ids is used. Ids that are still unused when the broker stops are lost. A block is also
lost if the outcome of its write is unknown.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from barnabas.errors import CoordinatorLoadInProgress, NotController
from barnabas.shielded import retrieve_error, shielded

_PATIENCE_S = 1.0  # the client's other requests wait in the meantime


class ProducerIds:
    """Allocates producer ids."""

    __slots__ = ("_end", "_next", "_take_block", "_taking")

    def __init__(self, take_block: Callable[[], Awaitable[tuple[int, int]]]) -> None:
        """`take_block` returns the first and the last id of a new block, or
        raises NotController.
        """
        self._take_block = take_block
        self._next = 0
        self._end = 0  # exclusive
        self._taking: asyncio.Task[None] | None = None

    def next(self) -> int | None:
        """Return the next id of the current block, or None if a new block is needed."""
        if self._next >= self._end:
            return None
        producer_id = self._next
        self._next += 1
        return producer_id

    async def next_from_new_block(self) -> int:
        """Return the next id. If none is left, obtain one new block for all callers that are
        waiting.

        Raises CoordinatorLoadInProgress, as Kafka does, if the metadata store does not respond
        soon, because old producers treat any other error as fatal. The block is used as soon as it
        arrives.
        """
        deadline = asyncio.get_running_loop().time() + _PATIENCE_S
        # Use a loop, because other callers that were waiting may have used up the whole block.
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
        retrieve_error(taking)  # there may be no request left that waits for it
