"""Removes replicas that the controller has stopped or moved, or that were lost when a disk
failed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from barnabas.cluster.image import NO_LEADER

if TYPE_CHECKING:
    from barnabas.broker.partitions.replica import Replica
    from barnabas.broker.partitions.replica_listener import ReplicaListener
    from barnabas.broker.partitions.replicas import Replicas
    from barnabas.errors import KafkaError


def follows(replica: Replica) -> bool:
    """Return whether the replica is a follower and has a leader to fetch from."""
    return not replica.partition.is_leader and replica.partition.leader != NO_LEADER


class ReplicaRemoval:
    """Removes replicas and notifies their listeners.

    This is the only class that removes replicas.
    """

    __slots__ = ("_listeners", "replicas")

    def __init__(self, replicas: Replicas, listeners: Sequence[ReplicaListener]) -> None:
        self.replicas = replicas
        self._listeners = listeners

    def remove(self, replica: Replica, reason: KafkaError | None = None) -> None:
        """Stop hosting the replica, but keep its log.

        `reason` is the error that waiting requests get.
        """
        self.replicas.remove(replica)
        for listener in self._listeners:
            if follows(replica):
                listener.on_unfollowing(replica)
            listener.on_left(replica)
        replica.on_stopped(reason)
