"""Defines the interface for parts that react to a replica's role changes, such as coordinators."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from barnabas.broker.partitions.replica import Replica


class ReplicaListener:
    """Receives the role changes of this broker's replicas; all methods do nothing by default."""

    __slots__ = ()

    def on_leading(self, replica: Replica) -> None:
        """Called when this broker leads the partition in a new leader epoch."""

    def on_left(self, replica: Replica) -> None:
        """Called when this broker no longer leads or hosts the partition."""

    def on_following(self, replica: Replica, leader_id: int) -> None:
        """Called when this broker follows this leader, for the first time or in a new leader
        epoch.
        """

    def on_moved(self, replica: Replica) -> None:
        """Called when the log has moved to another directory: a new object with the same
        contents."""

    def on_unfollowing(self, replica: Replica) -> None:
        """Called when the replica becomes the leader, has no leader to follow, or is no longer
        hosted.
        """
