"""The parts that act on the role of a replica: coordinators load, fetchers follow its leader."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from barnabas.broker.partitions.replica import Replica


class ReplicaListener:
    """Is notified of each change of role on this broker; does nothing unless it overrides."""

    __slots__ = ()

    def on_leading(self, replica: Replica) -> None:
        """This broker leads the partition, in a new epoch."""

    def on_left(self, replica: Replica) -> None:
        """This broker no longer leads or no longer hosts the partition."""

    def on_following(self, replica: Replica, leader_id: int) -> None:
        """This broker follows that leader, or follows it in a new epoch."""

    def on_moved(self, replica: Replica) -> None:
        """Its log, with the same content, is in another log directory now, and another object."""

    def on_unfollowing(self, replica: Replica) -> None:
        """The replica leads, has no leader to follow, or is no longer hosted."""
