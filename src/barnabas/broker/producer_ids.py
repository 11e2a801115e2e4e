"""This broker's block of producer ids: taken from the metadata store, handed out one by one.

An id is never handed out twice in the life of a cluster: a block is taken by a conditional write
before its first id is used, and what is left of it at a stop is lost.
"""

from __future__ import annotations

from barnabas.broker.controller_runner import ControllerRunner


class ProducerIds:
    """Hands out producer ids."""

    __slots__ = ("_controller", "_end", "_next")

    def __init__(self, controller: ControllerRunner) -> None:
        self._controller = controller
        self._next = 0
        self._end = 0  # exclusive

    def next(self) -> int | None:
        """The next id of the block at hand, or None when a new block has to be taken."""
        if self._next >= self._end:
            return None
        producer_id = self._next
        self._next += 1
        return producer_id

    async def next_from_new_block(self) -> int:
        """The next id, after taking a block if none is left (several callers may wait at once)."""
        while (producer_id := self.next()) is None:
            first, last = await self._controller.allocate_producer_id_block()
            if self._next >= self._end:
                self._next, self._end = first, last + 1
        return producer_id
