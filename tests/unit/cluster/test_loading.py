"""A tree that a real Kafka left is loaded as it is, and left as it is found."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from barnabas.cluster.embedded import EmbeddedStore
from barnabas.cluster.image import PartitionImage
from barnabas.cluster.loading import load_brokers, load_configs_of
from barnabas.cluster.store import Create
from tests.kit.whole_tree import load_topics


async def _imported(shared: Path, name: str) -> EmbeddedStore:
    """A store that holds a recorded tree, ephemeral nodes included."""
    text = (shared / "fixtures" / "kafka-3.9" / "zookeeper" / name).read_text()
    store = EmbeddedStore()
    await store.commit(
        [
            Create(path, None if node["data"] is None else node["data"].encode())
            for path, node in sorted(json.loads(text).items())
            if path != "/"
        ]
    )
    return store


def test_topics_brokers_and_configs(shared: Path) -> None:
    """ZK-1"""

    async def scenario() -> None:
        store = await _imported(shared, "single-running.json")
        topics = await load_topics(store)
        assert len(topics) == 39
        assert all(topic.name == name for name, topic in topics.items())
        epochs = topics["epochs"]
        assert epochs.partitions == {0: PartitionImage(0, 6, (0,), (0,), 0, 9)}
        assert len(epochs.topic_id) == 16
        assert epochs.config["segment.bytes"] == "700"
        assert len(topics["__consumer_offsets"].partitions) == 50
        brokers = await load_brokers(store)
        assert list(brokers) == [0]
        assert brokers[0].endpoints[0].port == 20010
        assert await load_configs_of(store, ["epochs"]) == {"epochs": epochs.config}

    asyncio.run(scenario())


def test_a_partition_without_its_state_node_was_never_led(shared: Path) -> None:
    async def scenario() -> None:
        store = await _imported(shared, "single-running.json")
        topic = (await load_topics(store))["__consumer_offsets"]
        assert topic.partitions[49] == PartitionImage.never_led([0])
        assert topic.partitions[0].leader == 0

    asyncio.run(scenario())


def test_what_is_not_there(shared: Path) -> None:
    async def scenario() -> None:
        store = EmbeddedStore()
        assert await load_topics(store) == {}
        assert await load_brokers(store) == {}
        assert await load_configs_of(store, ["none"]) == {"none": {}}

    asyncio.run(scenario())
