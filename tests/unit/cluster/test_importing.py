"""ZK-6: a tree of Kafka's becomes the embedded store's, whole, and without what is over."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from barnabas.cluster import layout
from barnabas.cluster.embedded import EmbeddedStore
from barnabas.cluster.importing import ImportSummary, import_tree
from barnabas.cluster.layout import ProducerIdBlock
from barnabas.cluster.loading import no_log
from barnabas.cluster.store import Create, MetadataStore
from barnabas.errors import ConfigError, CorruptData
from barnabas.types import TopicPartition
from tests.kit.whole_tree import load_topics

TREES = (
    "single-running.json",
    "single-stopped.json",
    "single-ibp2.0-running.json",
    "crash-killed.json",
    "cluster-final-broker3-down.json",
    "cluster-unclean-leader.json",
    "cluster-ibp2.6.json",
)

SMALL: dict[str, Any] = {
    "/": {"data": ""},
    "/brokers": {"data": None},
    "/brokers/topics": {"data": None},
    "/brokers/topics/t": {"data": '{"version":1,"partitions":{"0":[0],"1":[0]}}'},
}


def run(scenario: Callable[[EmbeddedStore], Awaitable[None]]) -> None:
    async def whole() -> None:
        store = EmbeddedStore()
        await scenario(store)
        await store.close()

    asyncio.run(whole())


def import_into(store: MetadataStore, tree: dict[str, Any]) -> Awaitable[ImportSummary]:
    return import_tree(store, tree, no_log)


@pytest.mark.foreign
@pytest.mark.parametrize("name", TREES)
def test_every_node_that_stays_is_there(shared: Path, name: str) -> None:
    """ZK-6"""
    text = (shared / "fixtures" / "kafka-3.9" / "zookeeper" / name).read_text()
    tree: dict[str, Any] = json.loads(text)

    async def scenario(store: EmbeddedStore) -> None:
        summary = await import_into(store, tree)
        ephemeral = {path for path, node in tree.items() if node.get("ephemeral")}
        assert summary.ephemeral_nodes == len(ephemeral)
        for path, node in tree.items():
            found = await store.read(path)
            if path in ephemeral:
                assert found is None, path
            elif path != "/":
                assert found is not None, path
                data = node["data"]
                assert found.data == (None if data is None else data.encode()), path
                assert found.owner == 0
        topics = await load_topics(store)
        assert len(topics) == summary.topics
        partitions = {
            TopicPartition(topic.name, number)
            for topic in topics.values()
            for number in topic.partitions
        }
        assert len(partitions) == summary.partitions
        for topic in topics.values():
            for number, partition in topic.partitions.items():
                assert partition.partition_epoch >= 0, "every partition has a state"
                is_new = TopicPartition(topic.name, number) in summary.new_states
                assert is_new == (layout.state_path(topic.name, number) not in tree)

    run(scenario)


def test_a_missing_state_begins_above_every_epoch_of_the_log() -> None:
    """ZK-6: never 0 again, or the epoch history would be cut."""
    epochs = {TopicPartition("t", 0): 6}

    async def scenario(store: EmbeddedStore) -> None:
        await import_tree(store, SMALL, lambda name: epochs.get(name, -1))
        for number, leader_epoch in ((0, 7), (1, 0)):
            node = await store.read(f"/brokers/topics/t/partitions/{number}/state")
            assert node is not None
            state = layout.decode_state("t", number, node.data)
            assert (state.leader, state.leader_epoch, state.isr) == (0, leader_epoch, (0,))

    run(scenario)


def test_a_store_that_was_merely_started_is_empty() -> None:
    """What every start makes is replaced; numbers that never come twice keep the larger one."""

    async def scenario(store: EmbeddedStore) -> None:
        block = layout.encode_producer_id_block(ProducerIdBlock(0, 9000, 9999))
        await store.commit(
            [
                Create("/brokers"),
                Create("/brokers/topics"),
                Create("/controller_epoch", b"3"),
                Create("/latest_producer_id_block", block),
                Create("/feature", b"ours"),
            ]
        )
        smaller = layout.encode_producer_id_block(ProducerIdBlock(0, 1000, 1999)).decode()
        tree = SMALL | {
            "/controller_epoch": {"data": "2"},
            "/latest_producer_id_block": {"data": smaller},
            "/feature": {"data": "theirs"},
        }
        await import_into(store, tree)
        for path, data in (
            ("/controller_epoch", b"3"),
            ("/latest_producer_id_block", block),
            ("/feature", b"theirs"),
        ):
            node = await store.read(path)
            assert node is not None and node.data == data
        with pytest.raises(ConfigError, match="already has /brokers/topics/t"):
            await import_into(store, SMALL)

    run(scenario)


def test_larger_numbers_of_the_tree_are_taken() -> None:
    async def scenario(store: EmbeddedStore) -> None:
        await store.commit([Create("/controller_epoch", b"3"), Create("/latest_producer_id_block")])
        block = '{"version":1,"broker":0,"block_start":"1000","block_end":"1999"}'
        tree = {
            "/controller_epoch": {"data": "41"},
            "/latest_producer_id_block": {"data": block},
        }
        await import_into(store, tree)
        for path in tree:
            node = await store.read(path)
            assert node is not None and node.data == tree[path]["data"].encode()

    run(scenario)


def test_a_sequence_goes_on_behind_what_came_along() -> None:
    """A later change has a larger number than all that were read before."""

    async def scenario(store: EmbeddedStore) -> None:
        tree = {
            "/config": {"data": None},
            "/config/changes": {"data": None},
            "/config/changes/config_change_0000000041": {"data": "{}"},
        }
        await import_into(store, tree)
        (path,) = await store.commit([Create("/config/changes/config_change_", sequential=True)])
        assert path == "/config/changes/config_change_0000000042"

    run(scenario)


@pytest.mark.parametrize(
    ("tree", "complaint"),
    [
        (SMALL | {"/brokers/topics/t": {"data": "{}"}}, "/brokers/topics/t cannot be read"),
        (SMALL | {"/brokers/topics/t": {"data": None}}, "/brokers/topics/t cannot be read"),
        (SMALL | {"/a/b": {"data": "x"}}, "/a/b is in the tree, but its parent /a is not"),
        (SMALL | {"a": {"data": "x"}}, "'a' is not a node's path"),
        (SMALL | {"/brokers//x": {"data": "x"}}, "is not a node's path"),
        (SMALL | {"/x": "data"}, "/x is 'data' in the tree"),
        (SMALL | {"/x": {"data": 5}}, "/x has data 5, which is not text"),
        (SMALL | {"/x": {"data": "\ud800"}}, "which is not text"),
        (
            SMALL | {"/brokers/topics/t": {"data": '{"partitions":{"0":[]}}'}},
            "partition 0 has no replicas",
        ),
    ],
)
def test_what_is_no_tree_is_refused_as_a_whole(tree: dict[str, Any], complaint: str) -> None:
    async def scenario(store: EmbeddedStore) -> None:
        with pytest.raises(CorruptData) as caught:
            await import_into(store, tree)
        assert complaint in str(caught.value)
        assert list(store.tree.nodes) == ["/"]

    run(scenario)


def test_another_clusters_tree_is_refused() -> None:
    async def scenario(store: EmbeddedStore) -> None:
        await store.commit([Create("/cluster"), Create("/cluster/id", b'{"version":"1","id":"a"}')])
        tree = {"/cluster": {"data": None}, "/cluster/id": {"data": '{"version":"1","id":"b"}'}}
        with pytest.raises(ConfigError, match="to cluster b, but this store belongs to"):
            await import_into(store, tree)

    run(scenario)


def test_a_cluster_that_kraft_has_taken_over_is_refused() -> None:
    async def scenario(store: EmbeddedStore) -> None:
        with pytest.raises(ConfigError, match="a KRaft controller has taken over"):
            await import_into(store, SMALL | {"/controller": {"data": "{}"}})

    run(scenario)


def test_zookeepers_own_nodes_stay_behind() -> None:
    async def scenario(store: EmbeddedStore) -> None:
        tree = SMALL | {"/zookeeper": {"data": ""}, "/zookeeper/quota": {"data": ""}}
        summary = await import_into(store, tree)
        assert await store.read("/zookeeper") is None
        assert (summary.topics, summary.partitions) == (1, 2)

    run(scenario)
