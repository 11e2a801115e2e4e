"""Finds topics that were deleted while this broker could not be notified.

A controller announces a deletion only once, and only to the brokers that are live at that time. A
broker whose session had expired, or which missed a failed controller's last requests, would keep
the topic in its metadata indefinitely. The broker therefore compares its metadata with the metadata
tree once after each registration and once for each controller.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.cluster import layout
from barnabas.cluster.controller_requests import UpdateMetadata
from barnabas.cluster.loading import children

if TYPE_CHECKING:
    from collections.abc import Mapping

    from barnabas.broker.cluster_view import ClusterView
    from barnabas.cluster.image import TopicImage
    from barnabas.cluster.store import MetadataStore


class DeletedTopics:
    """Finds topics that are in the image but not in the metadata store."""

    __slots__ = ("_looked", "_store", "_view")

    def __init__(self, view: ClusterView, store: MetadataStore) -> None:
        self._view = view
        self._store = store
        self._looked = (0, -1)  # the controller epoch and the broker epoch of the last check

    async def find(self, controller_epoch: int, broker_epoch: int) -> Mapping[str, TopicImage]:
        """Return the topics to pass to `forget` after an update from this controller.

        Raises MetadataError.

        `broker_epoch` identifies the registration to which the controller sent the update. The
        controller may learn of a new registration before this broker does, and it does not send
        another update for that registration.
        """
        # One check for each registration and each controller is enough, because later deletions
        # arrive as requests.
        now = (controller_epoch, max(broker_epoch, self._view.broker_epoch))
        topics = self._view.image.topics
        if now == self._looked or not topics:
            return {}
        existing = frozenset(await children(self._store, layout.TOPICS))
        self._looked = now
        return {name: topic for name, topic in topics.items() if name not in existing}

    def forget(self, deleted: Mapping[str, TopicImage]) -> None:
        """Remove these topics from the image, except for topics that a controller has sent in the
        meantime.

        This exception is needed because the tree may have been read from a ZooKeeper server that
        lags behind. Committed offsets for these topics are kept for the same reason.
        """
        image = self._view.image
        names = tuple(name for name in deleted if image.topics.get(name) is deleted[name])
        if names:
            self._view.update(image.apply(UpdateMetadata.removing(names, image)))
