"""Defines the parts of a broker that are used to move a replica between log directories.

This class has its own module because it is needed both by `directory_moves` and by the mover, which
`directory_moves` loads later. Those two modules must not import each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from barnabas.named_tuple import NamedTuple

if TYPE_CHECKING:
    import asyncio

    from barnabas.broker.partitions.directory_failure import DirectoryFailures
    from barnabas.broker.partitions.replica_listener import ReplicaListener
    from barnabas.broker.partitions.throttles import Throttles
    from barnabas.types import TopicPartition


class MoverParts(NamedTuple):
    """The parts of a broker that `ReplicaMover` uses. The mover is loaded for the first move."""

    failures: DirectoryFailures
    listeners: Sequence[ReplicaListener]
    throttles: Throttles
    stopping: asyncio.Event
    leaving: set[TopicPartition]
    """The partitions whose switch to another directory has not been written to disk yet."""
