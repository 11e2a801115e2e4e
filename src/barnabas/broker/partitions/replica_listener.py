"""Defines the interface of parts that react to a replica's role changes, such as coordinators."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from barnabas.broker.partitions.replica import Replica


class ReplicaListener:
    """Is notified when the roles of this broker's replicas change.

    By default, all methods do nothing.
    """

    __slots__ = ()

    def on_leading(self, replica: Replica) -> None:
        """Called when this broker becomes the partition's leader in a new leader epoch."""

    def on_left(self, replica: Replica) -> None:
        """Called when this broker no longer leads or hosts the partition."""

    def on_following(self, replica: Replica, leader_id: int) -> None:
        """Called when this broker starts to follow this leader, or follows it in a new leader
        epoch.
        """

    def on_moved(self, replica: Replica) -> None:
        """Called when the log has moved to another directory.

        The log is then a new object with the same contents."""

    def on_unfollowing(self, replica: Replica) -> None:
        """Called when the replica becomes the leader, has no leader to follow, or is no longer
        hosted.
        """
