"""Defines the parts of a broker that move a replica between log directories.

The class has its own module because both `directory_moves` and the mover, which `directory_moves`
loads later, need it, and modules must not import each other.
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
    """The parts of a broker that `ReplicaMover` uses; it is loaded with the first move."""

    failures: DirectoryFailures
    listeners: Sequence[ReplicaListener]
    throttles: Throttles
    stopping: asyncio.Event
    leaving: set[TopicPartition]
    """The partitions whose switch to another directory is not on disk yet."""
