"""Notifies the controller of ISRs that leaders have written themselves, as they do in versions
before 2.7 (RE-9).

    /isr_change_notification/isr_change_0000000007
        {"version":1,"partitions":[{"topic":"t","partition":0}]}

Each node lists partitions whose state nodes have been written. Regardless of its own version, the
controller reads those state nodes, notifies all brokers and removes this node.
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
"""The maximum number of partitions in a node, which keeps the size of the node below a megabyte."""


class Announced(NamedTuple):
    """The notifications that have been read.

    Their nodes exist until they are passed to `remove`.
    """

    partitions: list[TopicPartition]
    paths: list[str]


async def announce(store: MetadataStore, names: Sequence[TopicPartition]) -> None:
    """Announce that the ISRs of these partitions have been written. Raises MetadataError."""
    for first in range(0, len(names), _PARTITIONS_AT_ONCE):
        data = layout.encode_isr_change(names[first : first + _PARTITIONS_AT_ONCE])
        await store.commit([Create(_PREFIX, data, sequential=True)])


async def read_announced(store: MetadataStore) -> Announced:
    """Read the notifications in order, and list each partition only once."""
    paths = [f"{layout.ISR_CHANGES}/{name}" for name in await children(store, layout.ISR_CHANGES)]
    partitions: dict[TopicPartition, None] = {}
    for path, node in zip(paths, await store.read_many(paths), strict=True):
        # Another controller removed the node in the meantime.
        if node is None:
            continue
        try:
            partitions.update(dict.fromkeys(layout.decode_isr_change(path, node.data)))
        except CorruptData as error:
            _log.error("ignoring a malformed ISR change notification: %s", error)
    return Announced(list(partitions), paths)


async def remove(store: MetadataStore, paths: Iterable[str], epoch_version: int) -> None:
    """Remove these nodes. `epoch_version` prevents a controller that has been deposed from removing
    them.
    """
    for path in paths:
        with suppress(NoNode):
            await store.commit([Check(layout.CONTROLLER_EPOCH, epoch_version), Delete(path)])


async def read_states(
    store: MetadataStore, names: Iterable[TopicPartition]
) -> dict[TopicPartition, Written]:
    """Read the state nodes of these partitions, and skip any that do not exist."""
    paths = {name: layout.state_path(*name) for name in names}
    nodes = await store.read_many(list(paths.values()))
    return {
        name: Written(layout.decode_state(*name, node.data), node.version)
        for name, node in zip(paths, nodes, strict=True)
        if node is not None
    }


def states_written(operations: Iterable[Operation]) -> list[TopicPartition]:
    """Return the partitions for which these operations write a state node that already exists."""
    found = (layout.partition_of_state(each.path) for each in operations if isinstance(each, Set))
    return [name for name in dict.fromkeys(found) if name is not None]
