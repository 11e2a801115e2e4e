"""A metadata tree's topics, all at once."""

from __future__ import annotations

from barnabas.cluster import layout
from barnabas.cluster.image import TopicImage
from barnabas.cluster.loading import LatestEpochOf, children, images_of, no_log
from barnabas.cluster.store import MetadataStore


async def load_topics(
    store: MetadataStore, latest_epoch_of: LatestEpochOf = no_log
) -> dict[str, TopicImage]:
    """Every topic as the tree says; nothing is watched, and none is given an id."""
    names = await children(store, layout.TOPICS)
    nodes = await store.read_many([layout.topic_path(name) for name in names])
    topics = {
        name: layout.decode_topic(name, node.data)
        for name, node in zip(names, nodes, strict=True)
        if node is not None
    }
    return await images_of(store, topics, latest_epoch_of)
