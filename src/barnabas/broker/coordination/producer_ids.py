"""This broker's block of producer ids: taken from the metadata store, handed out one by one.

An id is never handed out twice in the life of a cluster: a block is taken by a conditional write
before its first id is used, and what is left of it at a stop is lost. So is a block of which the
store did not say whether it was taken.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from barnabas.cluster import layout
from barnabas.cluster.layout import ProducerIdBlock
from barnabas.cluster.store import BadVersion, MetadataError, MetadataStore, Set
from barnabas.errors import CoordinatorLoadInProgress, NotController

if TYPE_CHECKING:
    from barnabas.broker.controller.runner import ControllerRunner

_IDS_PER_BLOCK = 1000
_PATIENCE_S = 1.0  # what else a client asks waits behind this


async def take_block(store: MetadataStore, broker_id: int) -> tuple[int, int]:
    """The first and the last of a thousand producer ids that nobody has had before.

    Raises NotController, which has whoever asks try again, if the store does not answer.
    """
    while True:
        try:
            node = await store.read(layout.PRODUCER_ID_BLOCK)
            assert node is not None, f"{layout.PRODUCER_ID_BLOCK} is made at every start"
            previous = layout.decode_producer_id_block(node.data)
            first = 0 if previous is None else previous.last + 1
            block = ProducerIdBlock(broker_id, first, first + _IDS_PER_BLOCK - 1)
            data = layout.encode_producer_id_block(block)
            await store.commit([Set(layout.PRODUCER_ID_BLOCK, data, node.version)])
        except BadVersion:
            continue  # another broker took that one
        except MetadataError as error:
            raise NotController(f"the metadata store does not answer: {error}") from error
        return block.first, block.last


class ProducerIds:
    """Hands out producer ids."""

    __slots__ = ("_controller", "_end", "_next", "_taking")

    def __init__(self, controller: ControllerRunner) -> None:
        self._controller = controller
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
        while (producer_id := self.next()) is None:
            if self._taking is None:
                self._taking = asyncio.get_running_loop().create_task(self._take())
                self._taking.add_done_callback(self._taken)
            try:
                async with asyncio.timeout_at(deadline):
                    await asyncio.shield(self._taking)
            except (TimeoutError, NotController) as error:
                why = str(error) or "the metadata store is waited for"
                raise CoordinatorLoadInProgress(f"no producer ids are left: {why}") from error
        return producer_id

    async def _take(self) -> None:
        first, last = await self._controller.allocate_producer_id_block()
        self._next, self._end = first, last + 1

    def _taken(self, taking: asyncio.Task[None]) -> None:
        self._taking = None
        if not taking.cancelled():
            taking.exception()  # nobody may be left to hear of it
