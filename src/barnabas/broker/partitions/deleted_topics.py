"""Finds topics that were deleted while this broker could not be notified of it.

A controller sends a deletion once, to the brokers that are live then. A broker whose session is
over for a while, or that has missed the last requests of a controller that failed, would offer the
topic to its clients indefinitely. So it looks into the metadata tree once in each registration, and
under each controller.
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
    """Finds topics of the image that the metadata store lacks."""

    __slots__ = ("_looked", "_store", "_view")

    def __init__(self, view: ClusterView, store: MetadataStore) -> None:
        self._view = view
        self._store = store
        self._looked = (0, -1)  # under which controller epoch, and in which registration

    async def find(self, controller_epoch: int, broker_epoch: int) -> Mapping[str, TopicImage]:
        """Return what to `forget` after an update of this controller; raises MetadataError.

        `broker_epoch`: of the registration that the update is meant for. The controller may see a
        new one before this broker knows of it, and sends no other update for it.
        """
        # Once is enough under each of these: later deletions come as requests.
        now = (controller_epoch, max(broker_epoch, self._view.broker_epoch))
        topics = self._view.image.topics
        if now == self._looked or not topics:
            return {}
        existing = frozenset(await children(self._store, layout.TOPICS))
        self._looked = now
        return {name: topic for name, topic in topics.items() if name not in existing}

    def forget(self, deleted: Mapping[str, TopicImage]) -> None:
        """Remove these from the image, but for those that a controller has named since: the tree
        may have been read where it was not up to date yet. For the same reason the offsets stay
        that groups have committed for them."""
        image = self._view.image
        names = tuple(name for name in deleted if image.topics.get(name) is deleted[name])
        if names:
            self._view.update(image.apply(UpdateMetadata.removing(names, image)))
