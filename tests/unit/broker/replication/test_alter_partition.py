"""ISRs as leaders propose them, between real brokers: with any controller, and with none."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import suppress

import pytest

from barnabas import Cluster
from barnabas.broker.server import Server
from barnabas.cluster import layout
from barnabas.cluster.image import BrokerImage, Endpoint, PartitionImage
from barnabas.cluster.store import Create, Delete, MetadataStore, NodeExists, NoNode
from barnabas.controller.topics import NewTopic
from barnabas.types import TopicPartition
from tests.kit.broker.scenes import append, play
from tests.kit.waiting import until

LAG_MS = 1_500


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    """Broker 1 is the first controller."""
    config = {"replica.lag.time.max.ms": str(LAG_MS), "replica.fetch.wait.max.ms": "100"}
    with Cluster(3, config=config) as made:
        yield made


def seen(server: Server, number: int = 0, topic: str = "t") -> PartitionImage:
    return server.node.image.topics[topic].partitions[number]


async def take_office(session: MetadataStore, broker_id: int, now_ms: int) -> None:
    """It is taken from any holder, however often that changes meanwhile."""
    node = layout.encode_controller(broker_id, now_ms)
    wanted = [Create(layout.CONTROLLER, node, ephemeral=True)]
    while True:
        is_held = await session.read(layout.CONTROLLER) is not None
        with suppress(NodeExists, NoNode):
            await session.commit([Delete(layout.CONTROLLER), *wanted] if is_held else wanted)
            return


async def follow_no_more(controller: Server, leader: Server, follower: Server) -> None:
    """A topic whose second follower has stopped to fetch."""
    await controller.node.controller.create_topic(NewTopic("t", assignment={0: [2, 3, 1]}))
    await until(lambda: all("t" in each.node.image.topics for each in (follower, leader)))
    assert follower.parts.partitions.others is not None
    await follower.parts.partitions.others.fetchers.stop()


def test_a_follower_that_is_too_slow_leaves_and_one_that_is_back_joins(cluster: Cluster) -> None:
    """RE-4, RE-5: what the leader proposes is what everybody hears, by few requests."""

    async def scene() -> None:
        controller, leader, follower = (cluster.server(n) for n in (1, 2, 3))
        assignment = {number: [2, 3, 1] for number in range(30)}
        await controller.node.controller.create_topic(NewTopic("t", assignment=assignment))
        own = NewTopic("own", assignment={0: [1, 3, 2]})  # the controller asks itself
        await controller.node.controller.create_topic(own)
        await until(lambda: "own" in follower.node.image.topics)  # and so it follows
        await until(lambda: "t" in leader.node.image.topics)
        zxid = cluster.store.tree.zxid
        assert follower.parts.partitions.others is not None
        await follower.parts.partitions.others.fetchers.stop()
        append(leader, range(30))
        append(controller, range(1), "own")
        await until(lambda: all(seen(controller, n).isr == (2, 1) for n in range(30)))
        await until(lambda: all(seen(leader, n).isr == (2, 1) for n in range(30)))
        await until(lambda: seen(leader, 0, "own").isr == (1, 2))
        assert cluster.store.tree.zxid - zxid <= 15, "one commit for each request"
        state = await controller.node.store.read(layout.state_path("t", 7))
        assert state is not None
        assert layout.decode_state("t", 7, state.data).isr == (2, 1)
        partition = leader.node.replicas.leader_of(TopicPartition("t", 0)).partition
        await until(lambda: set(partition.isr) == {1, 2} and not partition.is_changing_isr)

    play(cluster, scene)
    cluster.stop_broker(3)
    cluster.start_broker(3)

    async def joined() -> None:
        controller = cluster.server(1)
        await until(lambda: all(set(seen(controller, n).isr) == {1, 2, 3} for n in range(30)))

    play(cluster, joined)


def test_a_proposal_outlasts_the_controller_that_it_was_meant_for(cluster: Cluster) -> None:
    """RE-4: it is put to the next one, be that this broker itself."""

    async def scene() -> None:
        controller, leader, follower = (cluster.server(n) for n in (1, 2, 3))
        await follow_no_more(controller, leader, follower)
        append(leader, range(1))
        # The controller does not answer, and then there is none.
        assert cluster.store is not None
        absent = cluster.store.session()
        node = layout.encode_controller(99, leader.clock.wall_ms())
        await absent.commit(
            [Delete(layout.CONTROLLER), Create(layout.CONTROLLER, node, ephemeral=True)]
        )
        partition = leader.node.replicas.leader_of(TopicPartition("t", 0)).partition
        await until(lambda: partition.is_changing_isr)
        await asyncio.sleep(0.3)
        assert set(partition.isr) == {1, 2, 3}
        await absent.close()
        await until(lambda: seen(leader).isr == (2, 1))
        assert controller.node.image.controller_epoch == 2
        await until(lambda: not partition.is_changing_isr)  # its answer comes by itself

    play(cluster, scene)


def test_a_proposal_outlasts_an_unexpected_error(cluster: Cluster) -> None:
    """RE-4: a controller whose name no resolver takes; its partition waits for the answer."""

    async def scene() -> None:
        controller, leader, follower = (cluster.server(n) for n in (1, 2, 3))
        await follow_no_more(controller, leader, follower)
        assert cluster.store is not None
        odd = cluster.store.session()
        now_ms = leader.clock.wall_ms()
        endpoint = Endpoint("PLAINTEXT", "a..b", 9092, "PLAINTEXT")
        registration = layout.encode_broker(BrokerImage(99, (endpoint,), None, -1), now_ms)
        await odd.commit([Create(layout.broker_path(99), registration, ephemeral=True)])
        await until(lambda: 99 in leader.node.image.brokers)
        await take_office(odd, 99, now_ms)
        await until(lambda: leader.node.controller.controller_id == 99)
        append(leader, range(1))
        partition = leader.node.replicas.leader_of(TopicPartition("t", 0)).partition
        await until(lambda: partition.is_changing_isr)
        await asyncio.sleep(0.3)
        await odd.close()
        await until(lambda: seen(leader).isr == (2, 1))

    play(cluster, scene)
