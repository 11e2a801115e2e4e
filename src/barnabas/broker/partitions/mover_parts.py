"""What the moves of replicas between log directories have of their broker."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import asyncio

    from barnabas.broker.partitions.directory_failure import DirectoryFailures
    from barnabas.broker.partitions.replica_listener import ReplicaListener
    from barnabas.broker.partitions.throttles import Throttles
    from barnabas.types import TopicPartition


class MoverParts(NamedTuple):
    """Handed on by `DirectoryMoves`, which loads the mover later."""

    failures: DirectoryFailures
    listeners: Sequence[ReplicaListener]
    throttles: Throttles
    stopping: asyncio.Event
    leaving: set[TopicPartition]
    """Those that have switched, which is not on disk yet."""
