"""This broker's block of producer ids: taken from the metadata store, handed out one by one.

An id is never handed out twice in the life of a cluster: a block is taken by a conditional write
before its first id is used, and what is left of it at a stop is lost. So is a block of which the
store did not say whether it was taken.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.cluster import layout
from barnabas.cluster.layout import ProducerIdBlock
from barnabas.cluster.store import BadVersion, MetadataError, MetadataStore, Set
from barnabas.errors import NotController

if TYPE_CHECKING:
    from barnabas.broker.controller_runner import ControllerRunner

_IDS_PER_BLOCK = 1000


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
