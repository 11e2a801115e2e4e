"""Allocates blocks of producer ids in the metadata store (`/latest_producer_id_block`).

A block is reserved by a conditional write before any of its ids is used, so no id is assigned twice
in a cluster.
"""

from __future__ import annotations

from barnabas.cluster import layout
from barnabas.cluster.layout import ProducerIdBlock
from barnabas.cluster.store import BadVersion, MetadataError, MetadataStore, Set
from barnabas.errors import NotController

_IDS_PER_BLOCK = 1000


async def take_block(store: MetadataStore, broker_id: int) -> tuple[int, int]:
    """Allocate a block of a thousand producer ids, and return the first and the last id.

    If the store does not answer, raises NotController, which makes the caller try again.
    """
    while True:
        try:
            node = await store.read(layout.PRODUCER_ID_BLOCK)
            assert node is not None, f"{layout.PRODUCER_ID_BLOCK} is created at every start"
            previous = layout.decode_producer_id_block(node.data)
            first = 0 if previous is None else previous.last + 1
            block = ProducerIdBlock(broker_id, first, first + _IDS_PER_BLOCK - 1)
            data = layout.encode_producer_id_block(block)
            await store.commit([Set(layout.PRODUCER_ID_BLOCK, data, node.version)])
        except BadVersion:
            continue  # another broker has allocated this block
        except MetadataError as error:
            raise NotController(f"the metadata store does not answer: {error}") from error
        return block.first, block.last
