"""Notifies the controller of the ISRs that leaders below version 2.7 write themselves (RE-9).

    /isr_change_notification/isr_change_0000000007
        {"version":1,"partitions":[{"topic":"t","partition":0}]}

They have already written the partitions' state nodes; this node says which. The controller reads
the state nodes, notifies all brokers and removes this node, whatever its own version is.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from contextlib import suppress

from barnabas.cluster import layout
from barnabas.cluster.loading import children
from barnabas.cluster.store import Check, Create, Delete, MetadataStore, NoNode, Operation, Set
from barnabas.controller.isr import Written
from barnabas.errors import CorruptData
from barnabas.named_tuple import NamedTuple
from barnabas.types import TopicPartition

_log = logging.getLogger(__name__)

_PREFIX = f"{layout.ISR_CHANGES}/isr_change_"
_PARTITIONS_AT_ONCE = 2_000
"""The limit that keeps a node below a megabyte, however long the topics' names are."""


class Announced(NamedTuple):
    """The notifications that were found; their nodes stay until `remove`."""

    partitions: list[TopicPartition]
    paths: list[str]


async def announce(store: MetadataStore, names: Sequence[TopicPartition]) -> None:
    """Announce that these partitions' ISRs have been written. Raises MetadataError."""
    for first in range(0, len(names), _PARTITIONS_AT_ONCE):
        data = layout.encode_isr_change(names[first : first + _PARTITIONS_AT_ONCE])
        await store.commit([Create(_PREFIX, data, sequential=True)])


async def read_announced(store: MetadataStore) -> Announced:
    """Read what leaders have announced, in their order, each partition once."""
    paths = [f"{layout.ISR_CHANGES}/{name}" for name in await children(store, layout.ISR_CHANGES)]
    partitions: dict[TopicPartition, None] = {}
    for path, node in zip(paths, await store.read_many(paths), strict=True):
        # Another controller has removed the node meanwhile.
        if node is None:
            continue
        try:
            partitions.update(dict.fromkeys(layout.decode_isr_change(path, node.data)))
        except CorruptData as error:
            _log.error("ignoring a malformed ISR change notification: %s", error)
    return Announced(list(partitions), paths)


async def remove(store: MetadataStore, paths: Iterable[str], epoch_version: int) -> None:
    """Remove these nodes; `epoch_version` is the controller's: a deposed one removes nothing."""
    for path in paths:
        with suppress(NoNode):
            await store.commit([Check(layout.CONTROLLER_EPOCH, epoch_version), Delete(path)])


async def read_states(
    store: MetadataStore, names: Iterable[TopicPartition]
) -> dict[TopicPartition, Written]:
    """Read the state nodes of these partitions; nodes that do not exist are left out."""
    paths = {name: layout.state_path(*name) for name in names}
    nodes = await store.read_many(list(paths.values()))
    return {
        name: Written(layout.decode_state(*name, node.data), node.version)
        for name, node in zip(paths, nodes, strict=True)
        if node is not None
    }


def states_written(operations: Iterable[Operation]) -> list[TopicPartition]:
    """Return the partitions whose existing state nodes these operations write."""
    found = (layout.partition_of_state(each.path) for each in operations if isinstance(each, Set))
    return [name for name in dict.fromkeys(found) if name is not None]
