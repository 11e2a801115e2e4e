"""Maintains this broker's view of the cluster, which consists of the cluster image and this
broker's own registration.

The control plane updates the image when the controller sends UpdateMetadata, and it updates the
registration when this broker registers. All other parts only read the view or wait until it meets a
condition. The image is immutable and is always replaced as a whole, so every image is a consistent
snapshot.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from barnabas.cluster.image import ClusterImage
from barnabas.shielded import shielded

if TYPE_CHECKING:
    from collections.abc import Callable

    from barnabas.types import TopicPartition

NO_EPOCH = -1


class ClusterView:
    """Holds the current image of the cluster. It is created before all other parts of a broker."""

    __slots__ = (
        "_broker_epoch",
        "_changed",
        "_is_registered",
        "broker_id",
        "has_peers",
        "image",
        "is_cluster_stopping",
    )

    def __init__(self, broker_id: int, *, has_peers: bool = False) -> None:
        """Create an empty view.

        `has_peers` means that other brokers share the metadata store, so any of them may be the
        controller.
        """
        self.broker_id = broker_id
        self.has_peers = has_peers
        self.is_cluster_stopping = False
        """Whether all brokers are being stopped. If so, losing other brokers is expected."""
        self.image = ClusterImage.empty()
        """The brokers, topics and leaders as the controller most recently described them. Only
        `update` replaces the image.
        """
        self._broker_epoch = NO_EPOCH
        self._changed: asyncio.Future[None] | None = None
        self._is_registered = asyncio.Event()

    def update(self, image: ClusterImage) -> None:
        """Replace the image."""
        self.image = image
        changed, self._changed = self._changed, None
        # All waiting callers share one future. Each of them checks the new image and waits again if
        # necessary.
        if changed is not None:
            changed.set_result(None)

    @property
    def broker_epoch(self) -> int:
        """The epoch of this broker's registration (the czxid of its znode), or -1 if it has not
        registered yet.
        """
        return self._broker_epoch

    def on_registered(self, broker_epoch: int) -> None:
        """Store a new registration's epoch. From now on, requests for an earlier registration are
        rejected.
        """
        self._broker_epoch = broker_epoch
        self._is_registered.set()

    async def until_registered(self) -> None:
        """Wait for the first registration."""
        await self._is_registered.wait()

    def live_brokers(self) -> dict[int, int]:
        """Return the live brokers, each with its registration epoch."""
        return {each.broker_id: each.epoch for each in self.image.brokers.values()}

    def is_known(self, name: TopicPartition) -> bool:
        """Return whether the partition exists on any broker."""
        topic = self.image.topics.get(name.topic)
        return topic is not None and name.partition in topic.partitions

    @property
    def has_metadata(self) -> bool:
        """Whether a controller has described the cluster since this broker started."""
        return not self.has_peers or self.broker_id in self.image.brokers

    async def until_metadata(self) -> None:
        """Wait until `has_metadata` is true. Before that, topics that exist may be missing from the
        image.
        """
        await self.until(lambda _: self.has_metadata)

    async def until(self, holds: Callable[[ClusterImage], bool]) -> None:
        """Wait until the image satisfies this condition."""
        while not holds(self.image):
            if self._changed is None:
                self._changed = asyncio.get_running_loop().create_future()
            await shielded(self._changed)
