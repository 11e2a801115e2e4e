"""The interface for parts that follow a replica's role: coordinators load, fetchers follow."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from barnabas.broker.partitions.replica import Replica


class ReplicaListener:
    """Is notified of role changes on this broker; the methods do nothing unless overridden."""

    __slots__ = ()

    def on_leading(self, replica: Replica) -> None:
        """Act on this broker leading the partition, in a new epoch."""

    def on_left(self, replica: Replica) -> None:
        """Act on this broker no longer leading or no longer hosting the partition."""

    def on_following(self, replica: Replica, leader_id: int) -> None:
        """Act on this broker following that leader, for the first time or in a new epoch."""

    def on_moved(self, replica: Replica) -> None:
        """Act on the log being in another directory: the content is the same, the object is new."""

    def on_unfollowing(self, replica: Replica) -> None:
        """Act on the replica leading, having no leader to follow, or no longer being hosted."""
