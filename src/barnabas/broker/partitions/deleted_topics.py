"""Topics that this broker still knows, and that were deleted while it could not hear of it.

A controller tells once that a topic goes, and it tells whoever lives then. A broker whose session
is over for a while, or that has not heard the last words of a controller that died, would offer
the topic to its clients for ever. So it looks into the tree once in each registration, and under
each controller.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.cluster import layout
from barnabas.cluster.controller_requests import UpdateMetadata
from barnabas.cluster.loading import children

if TYPE_CHECKING:
    from collections.abc import Mapping

    from barnabas.broker.context import Node
    from barnabas.cluster.image import TopicImage


class GoneTopics:
    """Made with the node."""

    __slots__ = ("_looked", "_node")

    def __init__(self, node: Node) -> None:
        self._node = node
        self._looked = (0, -1)  # under which controller epoch, and in which registration

    async def under(self, controller_epoch: int) -> Mapping[str, TopicImage]:
        """What to `forget` after an update of this controller; MetadataError."""
        now = (controller_epoch, self._node.view.broker_epoch)
        topics = self._node.image.topics
        if now == self._looked or not topics:
            return {}
        there = frozenset(await children(self._node.store, layout.TOPICS))
        self._looked = now
        return {name: topic for name, topic in topics.items() if name not in there}

    def forget(self, gone: Mapping[str, TopicImage]) -> None:
        """These are gone, but for those that a controller has named since: the tree may have been
        read where it was not up to date yet. So what groups have committed of them stays, too."""
        image = self._node.image
        names = tuple(name for name in gone if image.topics.get(name) is gone[name])
        if names:
            assert image.cluster_id is not None, "no controller has named a topic before"
            update = UpdateMetadata(
                image.controller_id,
                image.controller_epoch,
                image.cluster_id,
                tuple(image.brokers.values()),
                removed_topics=names,
            )
            self._node.view.update(image.apply(update))
