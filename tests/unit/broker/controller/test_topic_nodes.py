"""Topics as a controller reads them: all of a node counts, and in which version it was read."""

from __future__ import annotations

import asyncio

import pytest

from barnabas.broker.controller.registration import ensure_base
from barnabas.broker.controller.topic_nodes import TopicNodes
from barnabas.clock import SystemRandom
from barnabas.cluster import layout
from barnabas.cluster.embedded import EmbeddedStore
from barnabas.cluster.layout import StateNode, TopicNode
from barnabas.cluster.store import BadVersion, Create, Delete, Set
from barnabas.types import NO_TOPIC_ID, TopicPartition
from tests.kit.whole_tree import load_topics

ID = b"\1" * 16


async def _store() -> EmbeddedStore:
    store = EmbeddedStore()
    await ensure_base(store, None, SystemRandom())
    moving = TopicNode(ID, {0: (1, 2, 3), 1: (2, 3)}, adding={0: (3,)}, removing={0: (1,)})
    await store.commit(
        [
            Create("/controller_epoch", b"1"),
            Create("/brokers/topics/t", layout.encode_topic_node(moving)),
            Create("/brokers/topics/t/partitions"),
            Create("/brokers/topics/t/partitions/0"),
            Create(
                "/brokers/topics/t/partitions/0/state",
                layout.encode_state(StateNode(2, 5, (2, 1), 1)),
            ),
            Create("/config/topics/t", layout.encode_config({"retention.ms": "7"})),
        ]
    )
    return store


def _nodes(store: EmbeddedStore, touched: list[str], epoch_version: int = 0) -> TopicNodes:
    epochs = {TopicPartition("t", 1): 41}
    return TopicNodes(
        store, SystemRandom(), lambda name: epochs.get(name, -1), epoch_version, touched.append
    )


def test_a_topic_is_read_as_the_brokers_know_it_and_with_its_moves() -> None:
    """ZK-4, ZK-6, KIP-455"""

    async def scenario() -> None:
        store = await _store()
        topics = await _nodes(store, []).unknown(())
        loaded = await load_topics(store, lambda name: 41)
        first = topics["t"].partitions[0]
        assert (first.adding, first.removing) == ((3,), (1,))
        assert topics == loaded
        assert topics["t"].partitions[1].leader_epoch == 41
        await store.close()

    asyncio.run(scenario())


def test_known_topics_are_left_alone_and_a_larger_one_is_noticed_and_read() -> None:
    """TP-5: the version is that of the last look."""

    async def scenario() -> None:
        store = await _store()
        touched: list[str] = []
        nodes = _nodes(store, touched)
        topics = await nodes.unknown(())
        assert nodes.take_versions() == {"t": 0}
        assert await nodes.unknown(topics) == {}
        assert await nodes.grown(list(topics.values())) == []
        more = layout.encode_topic(ID, {0: (2, 3), 1: (2, 3), 2: (3, 1)})
        await store.commit([Set("/brokers/topics/t", more)])
        assert touched == ["t"] * len(touched) and touched
        (grown,) = await nodes.grown(list(topics.values()))
        assert sorted(grown.partitions) == [0, 1, 2]
        assert grown.partitions[0] == topics["t"].partitions[0], "what it knows it knows better"
        assert nodes.take_versions() == {"t": 1}
        touched.clear()
        await store.commit([Set("/brokers/topics/t", more)])
        assert touched, "it is watched again"
        await store.commit([Create("/brokers/topics/u", layout.encode_topic(ID, {0: [1]}))])
        assert list(await nodes.unknown(topics)) == ["u"]
        await store.close()

    asyncio.run(scenario())


def test_a_topic_that_a_tool_without_ids_enlarges_keeps_its_id() -> None:
    """KIP-516: tools before Kafka 2.8 write the node without it, and logs belong to the old id."""

    async def scenario() -> None:
        store = await _store()
        nodes = _nodes(store, [])
        topics = await nodes.unknown(())
        larger = b'{"version":1,"partitions":{"0":[2,3],"1":[2,3],"2":[3,1]}}'
        await store.commit([Set("/brokers/topics/t", larger)])
        (grown,) = await nodes.grown(list(topics.values()))
        assert (grown.topic_id, len(grown.partitions)) == (ID, 3)
        assert (await load_topics(store))["t"].topic_id == ID
        assert nodes.take_versions() == {"t": 2}
        await store.close()

    asyncio.run(scenario())


def test_an_id_that_was_lost_while_no_controller_looked_is_given_back() -> None:
    """KIP-516: the next controller knows it as a broker; a topic that was never led is another."""

    async def scenario() -> None:
        store = await _store()
        rewritten = b'{"version":1,"partitions":{"0":[2,3],"1":[2,3]}}'
        await store.commit([Set("/brokers/topics/t", rewritten)])
        await store.commit([Create("/brokers/topics/new", b'{"version":1,"partitions":{"0":[1]}}')])
        topics = await _nodes(store, []).unknown((), {"t": ID, "new": b"\2" * 16})
        assert topics["t"].topic_id == ID
        assert topics["new"].topic_id not in (ID, b"\2" * 16)
        assert (await load_topics(store))["t"].topic_id == ID
        await store.close()

    asyncio.run(scenario())


def test_mx_1_topics_that_a_controller_without_ids_announced_get_one_each() -> None:
    """MX-1: brokers know such topics (IBP 2.7) without an id, which is no id to give back."""

    async def scenario() -> None:
        store = await _store()
        for name in ("t", "u"):
            path, data = f"/brokers/topics/{name}", b'{"version":2,"partitions":{"0":[2]}}'
            known = await store.read(path)
            await store.commit([Create(path, data) if known is None else Set(path, data)])
            if known is None:
                await store.commit([Create(f"{path}/partitions", b"")])
        topics = await _nodes(store, []).unknown((), dict.fromkeys(("t", "u"), NO_TOPIC_ID))
        given = {topic.topic_id for topic in topics.values()}
        assert len(given - {NO_TOPIC_ID}) == 2
        await store.close()

    asyncio.run(scenario())


def test_only_the_controller_of_this_epoch_gives_an_id() -> None:
    """KIP-516, ZK-3"""

    async def scenario() -> None:
        store = await _store()
        old = b'{"version":1,"partitions":{"0":[1]}}'
        await store.commit([Create("/brokers/topics/old", old)])
        with pytest.raises(BadVersion):
            await _nodes(store, [], epoch_version=7).unknown(())
        nodes = _nodes(store, [])
        topic = (await nodes.unknown(("t",)))["old"]
        assert topic.topic_id != bytes(16)
        assert nodes.take_versions() == {"old": 1}
        assert (await load_topics(store))["old"].topic_id == topic.topic_id
        await store.close()

    asyncio.run(scenario())


@pytest.mark.thorough
def test_however_many_topics_get_an_id_no_commit_is_too_large_for_zookeeper() -> None:
    """KIP-516: jute.maxbuffer, which is a mebibyte by default."""

    async def scenario() -> None:
        store = await _store()
        replicas = ",".join(f'"{number}":[1,2,3]' for number in range(40))
        old = b'{"version":1,"partitions":{%s}}' % replicas.encode()
        names = [f"{'old' * 30}{number}" for number in range(3000)]
        for name in names:
            await store.commit([Create(layout.topic_path(name), old)])
        zxid = store.tree.zxid
        nodes = _nodes(store, [])
        topics = await nodes.unknown(("t",))
        assert {topic.topic_id for topic in topics.values()}.isdisjoint({None, bytes(16)})
        assert set(nodes.take_versions().values()) == {1}
        written = sum(
            len(node.data or b"") + len(path)
            for path, node in store.tree.nodes.items()
            if path.startswith("/brokers/topics/old")
        )
        assert store.tree.zxid - zxid >= written / 500_000
        assert (await load_topics(store))[names[-1]].topic_id == topics[names[-1]].topic_id
        await store.close()

    asyncio.run(scenario())


def test_the_paths_of_a_topic_can_be_deleted_in_their_order() -> None:
    """ZK-4: the request goes last, so an interrupted deletion goes on."""

    async def scenario() -> None:
        store = await _store()
        await store.commit([Create("/admin/delete_topics/t"), Create("/admin/delete_topics/u")])
        before = set(store.tree.nodes)
        paths = await _nodes(store, []).paths_of(["t", "u"])
        assert paths[-1].startswith("/admin/delete_topics/")
        assert len(paths) == 7
        await store.commit([Delete(path) for path in paths])
        assert before - set(store.tree.nodes) == set(paths)
        await store.close()

    asyncio.run(scenario())
