"""Topics written to a store whose answers take time: others may write in between."""

from __future__ import annotations

import asyncio

import pytest

from barnabas.broker.controller.topic_causes import TopicCauses
from barnabas.broker.controller.topic_writer import TopicWriter
from barnabas.clock import SystemRandom
from barnabas.cluster import layout
from barnabas.cluster.embedded import EmbeddedStore
from barnabas.cluster.image import BrokerImage, ClusterImage, Endpoint, TopicImage
from barnabas.cluster.store import Create, Delete, Set, Znode
from barnabas.controller.topics import NewTopic
from barnabas.errors import (
    InvalidPartitions,
    InvalidReplicationFactor,
    NotController,
    UnknownTopicOrPartition,
)

ADDRESS = (Endpoint("PLAINTEXT", "h", 9092, "PLAINTEXT"),)
IMAGE = ClusterImage("c", 0, 1, {0: BrokerImage(0, ADDRESS, None, 1)}, {}, {})


class FarStore(EmbeddedStore):
    """Answers a read when others have had their turn, as a store across the network does."""

    async def read(self, path: str) -> Znode | None:
        node = await super().read(path)
        await asyncio.sleep(0)
        return node


async def _store() -> FarStore:
    store = FarStore()
    await store.commit(
        [
            Create("/brokers"),
            Create("/brokers/topics"),
            Create("/brokers/topics/t", layout.encode_topic(b"\1" * 16, {0: [0]})),
            Create("/admin"),
            Create("/admin/delete_topics"),
        ]
    )
    return store


def test_a_writer_that_was_overtaken_reads_again() -> None:
    """TP-5: no partition is lost, and none is made twice."""

    async def scenario() -> None:
        store = await _store()
        writer = TopicWriter(store, SystemRandom(), TopicCauses(), lambda: IMAGE)
        outcomes = await asyncio.gather(
            *(writer.grow("t", total, None, validate_only=False) for total in (3, 3, 2, 6)),
            return_exceptions=True,
        )
        grown = [each for each in outcomes if not isinstance(each, BaseException)]
        refused = [each for each in outcomes if isinstance(each, BaseException)]
        assert all(isinstance(each, InvalidPartitions) for each in refused)
        added = [number for growth in grown for number in growth.added]
        assert sorted(added) == [1, 2, 3, 4, 5]
        node = await store.read("/brokers/topics/t")
        assert node is not None
        assert layout.decode_topic("t", node.data).replicas == dict.fromkeys(range(6), (0,))
        await store.close()

    asyncio.run(scenario())


def test_a_topic_whose_node_has_lost_its_id_keeps_it() -> None:
    """KIP-516: a tool before Kafka 2.8 has written the node, and the controller not yet again."""

    async def scenario() -> None:
        store = await _store()
        await store.commit([Set("/brokers/topics/t", b'{"version":1,"partitions":{"0":[0]}}')])
        known = TopicImage("t", b"\1" * 16, {}, {})
        image = IMAGE._replace(topics={"t": known})
        await TopicWriter(store, SystemRandom(), TopicCauses(), lambda: image).grow(
            "t", 2, None, validate_only=False
        )
        node = await store.read("/brokers/topics/t")
        assert node is not None
        assert layout.decode_topic("t", node.data).topic_id == known.topic_id
        await store.close()

    asyncio.run(scenario())


def test_a_namesake_whose_deletion_ends_meanwhile_leaves_a_topic_to_be_made() -> None:
    """TP-6: any broker makes a topic that a client asks for, also while another one goes."""

    async def scenario() -> None:
        store = await _store()
        await store.commit(
            [Create("/config"), Create("/config/topics"), Create("/config/topics/u", b"{}")]
        )
        writer = TopicWriter(store, SystemRandom(), TopicCauses(), lambda: IMAGE)
        made = asyncio.ensure_future(writer.create([(NewTopic("u"), {0: [0]})]))
        await asyncio.sleep(0)  # it has seen the config of the topic that goes
        await store.commit([Delete("/config/topics/u")])
        assert await made == {}
        assert await store.read("/config/topics/u") is not None
        assert await store.read("/brokers/topics/u") is not None
        await store.close()

    asyncio.run(scenario())


def test_a_topic_that_goes_while_one_looks_is_unknown() -> None:
    async def scenario() -> None:
        store = await _store()
        writer = TopicWriter(store, SystemRandom(), TopicCauses(), lambda: IMAGE)
        growth = asyncio.ensure_future(writer.grow("t", 3, None, validate_only=False))
        await asyncio.sleep(0)  # it has asked whether the topic is being deleted
        await asyncio.sleep(0)  # ... and has its node
        await store.commit([Delete("/brokers/topics/t")])
        with pytest.raises(UnknownTopicOrPartition):
            await growth
        await store.close()

    asyncio.run(scenario())


def test_without_a_session_a_client_is_sent_to_another_broker() -> None:
    """ZK-5: whether it is noticed at a look or at the commit."""

    async def scenario() -> None:
        store = await _store()
        session = store.session()
        writer = TopicWriter(session, SystemRandom(), TopicCauses(), lambda: IMAGE)
        session.expire()
        with pytest.raises(NotController):
            await writer.create([(NewTopic("u"), {0: [0]})])
        with pytest.raises(NotController):
            await writer.grow("t", 3, None, validate_only=True)
        with pytest.raises(NotController):
            await writer.delete(["t"])
        await store.close()

    asyncio.run(scenario())


def test_a_broker_that_knows_of_no_broker_yet_places_nothing() -> None:
    """TP-6: it was asked before its controller spoke to it."""

    async def scenario() -> None:
        store = await _store()
        writer = TopicWriter(store, SystemRandom(), TopicCauses(), ClusterImage.empty)
        (outcome,) = writer.check([NewTopic("u")])
        assert isinstance(outcome, InvalidReplicationFactor)
        await store.close()

    asyncio.run(scenario())
