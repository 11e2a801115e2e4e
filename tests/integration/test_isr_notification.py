"""Leaders below inter.broker.protocol.version 2.7 write their ISRs, and everybody hears of them."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

import pytest

from barnabas import Cluster
from barnabas.broker.controller.runner import ControllerRunner
from barnabas.broker.server import Server
from barnabas.client import SyncAdmin
from barnabas.cluster import layout
from barnabas.cluster.controller_requests import IsrAnswer, IsrProposal
from barnabas.cluster.image import PartitionImage
from barnabas.cluster.zookeeper import ZooKeeperStore
from barnabas.cluster.zookeeper_settings import Settings
from barnabas.controller.topics import NewTopic
from barnabas.protocol.api import METADATA
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from barnabas.records.control_records import COMMIT, Marker, build_marker
from barnabas.types import TopicPartition
from tests.kit.processes.cluster_load import (
    acknowledge_more,
    check_everything_is_there,
    check_replicas_are_equal,
    impatient_sender,
)
from tests.kit.processes.cluster_process import ClusterProcess, cluster_process
from tests.kit.processes.senders import PARTITIONS, sending
from tests.kit.raw_client import PATIENCE_S, RawClient
from tests.kit.waiting import until, wait_until

pytestmark = [pytest.mark.secured, pytest.mark.slow, pytest.mark.timeout(600)]

OLD = {"inter.broker.protocol.version": "2.6"}
NEW = {"inter.broker.protocol.version": "3.9-IV0"}
# A follower that lives is not to leave because the machine is busy for a moment.
LAG = {"replica.lag.time.max.ms": "2000", "replica.fetch.wait.max.ms": "100"}
NAMES = [TopicPartition("t", number) for number in range(3)]


# --- in one process ------------------------------------------------------------------------------


def play(cluster: Cluster, scene: Callable[[], Awaitable[None]]) -> None:
    cluster.thread.run(asyncio.wait_for(scene(), 2 * PATIENCE_S))


def seen(server: Server) -> list[PartitionImage]:
    topic = server.node.image.topics["t"]
    return [topic.partitions[number] for number in range(len(NAMES))]


def append(leader: Server) -> None:
    """Something that the followers have not: who has everything is never too slow."""
    for name in NAMES:
        marker = build_marker(Marker(0, leader.clock.wall_ms(), COMMIT, 0), 1, 0)
        replica = leader.node.replicas.leader_of(name)
        replica.append_control(memoryview(bytearray(marker)), leader.clock.wall_ms())
    leader.node.replicas.write_staged()


async def written(server: Server) -> list[tuple[layout.StateNode, int]]:
    nodes = await server.node.store.read_many([layout.state_path(*name) for name in NAMES])
    return [
        (layout.decode_state(*name, node.data), node.version)
        for name, node in zip(NAMES, nodes, strict=True)
        if node is not None
    ]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Of which topics an ISR was proposed by AlterPartition, to whomever."""
    topics: list[str] = []
    answer = ControllerRunner.alter_partitions

    async def counted(
        self: ControllerRunner, broker_id: int, epoch: int, proposals: Sequence[IsrProposal]
    ) -> dict[TopicPartition, IsrAnswer]:
        topics.extend(each.topic_partition.topic for each in proposals)
        return await answer(self, broker_id, epoch, proposals)

    monkeypatch.setattr(ControllerRunner, "alter_partitions", counted)
    return topics


@pytest.mark.parametrize(
    "configs", [{1: OLD, 2: OLD, 3: OLD}, {1: NEW, 2: OLD, 3: NEW}], ids=["all-old", "mixed"]
)
def test_a_follower_that_stops_copying_leaves_and_one_that_is_back_joins(
    configs: Mapping[int, Mapping[str, str]], asked: list[str]
) -> None:
    """RE-9, RE-7, RE-8: by the leader's own hand; a controller of any version learns of it and
    informs all, and the announcement is gone afterwards."""
    with Cluster(3, config=LAG, broker_config=configs) as cluster:
        controller, leader, follower = (cluster.server(each) for each in (1, 2, 3))

        async def begin() -> None:
            topic = NewTopic("t", assignment={name.partition: [2, 3, 1] for name in NAMES})
            await controller.node.controller.create_topic(topic)
            for server in (leader, follower):
                await until(lambda server=server: "t" in server.node.image.topics)  # type: ignore[misc]

        async def shrink() -> None:
            await begin()
            assert follower.parts.partitions.others is not None
            await follower.parts.partitions.others.fetchers.stop()
            append(leader)
            partitions = [leader.node.replicas.leader_of(name).partition for name in NAMES]
            await until(lambda: all(each.isr == (2, 1) for each in partitions))
            state = layout.StateNode(2, 0, (2, 1), controller.node.image.controller_epoch)
            assert await written(leader) == [(state, 1)] * len(NAMES)
            for server in (controller, leader, follower):
                await until(lambda server=server: all(each.isr == (2, 1) for each in seen(server)))  # type: ignore[misc]
            assert [each.partition_epoch for each in seen(controller)] == [1] * len(NAMES)
            await until(lambda: not announcements(cluster))

        play(cluster, shrink)
        cluster.stop_broker(3)
        cluster.start_broker(3)
        follower = cluster.server(3)

        async def grow() -> None:
            for server in (controller, leader, follower):
                await until(
                    lambda server=server: (  # type: ignore[misc]
                        "t" in server.node.image.topics
                        and all(set(each.isr) == {1, 2, 3} for each in seen(server))
                    )
                )
            for state, _ in await written(leader):
                assert set(state.isr) == {1, 2, 3}
            assert "t" not in asked
            await until(lambda: not announcements(cluster))
            assert controller.node.image.controller_epoch == 1, "no controller had to resign"

        play(cluster, grow)


def announcements(cluster: Cluster) -> list[str]:
    assert cluster.store is not None
    return [path for path in cluster.store.tree.nodes if path.startswith(f"{layout.ISR_CHANGES}/")]


def test_brokers_go_and_come_and_partitions_move_in_an_old_cluster() -> None:
    """RE-9, RE-13: what the controller writes follows on what leaders have written."""
    with Cluster(3, config={**LAG, **OLD}) as cluster:

        async def begin() -> None:
            topic = NewTopic("t", assignment={name.partition: [2, 3] for name in NAMES})
            await cluster.server(1).node.controller.create_topic(topic)
            await until(lambda: "t" in cluster.server(2).node.image.topics)
            append(cluster.server(2))

        async def everybody_is_back(*isr: int) -> None:
            await until(
                lambda: all(
                    "t" in cluster.server(each).node.image.topics
                    and all(set(one.isr) == set(isr) for one in seen(cluster.server(each)))
                    for each in cluster.broker_ids
                )
            )

        play(cluster, begin)
        for broker_id in (3, 2, 3):
            cluster.stop_broker(broker_id)
            cluster.start_broker(broker_id)
            play(cluster, lambda: everybody_is_back(2, 3))
        with SyncAdmin(cluster.bootstrap_servers) as admin:
            moves = {name: [1, 3] for name in NAMES}
            admin.alter_partition_reassignments(moves)

        async def moved() -> None:
            await everybody_is_back(1, 3)
            await until(
                lambda: all(
                    (each.replicas, each.adding) == ((1, 3), ()) for each in seen(cluster.server(1))
                )
            )

        play(cluster, moved)


# --- processes and a ZooKeeper -------------------------------------------------------------------


def isrs(cluster: ClusterProcess, broker_id: int, topic: str) -> list[set[int]]:
    """The ISRs in this broker's answers to its clients."""
    with RawClient(cluster.brokers[broker_id].bootstrap_servers) as client:
        request = MetadataRequest(topics=[MetadataRequestTopic(name=topic)])
        partitions = client.call(METADATA, 9, request).topics[0].partitions
        return [
            set(each.isr_nodes) for each in sorted(partitions, key=lambda one: one.partition_index)
        ]


def states(cluster: ClusterProcess, topic: str) -> list[layout.StateNode]:
    """As ZooKeeper has them."""

    async def read() -> list[layout.StateNode]:
        store = await ZooKeeperStore.open(Settings(cluster.zookeeper.connect, 60_000))
        try:
            paths = [layout.state_path(topic, number) for number in range(PARTITIONS)]
            nodes = await store.read_many(paths)
            return [
                layout.decode_state(topic, number, node.data)
                for number, node in enumerate(nodes)
                if node is not None
            ]
        finally:
            await store.close()

    return asyncio.run(read())


@pytest.mark.foreign
def test_old_leaders_on_a_real_zookeeper_lose_nothing(tmp_path: Path) -> None:
    """RE-9, RE-8: a broker that is paused leaves the ISRs while its session lives, and returns."""
    options = (
        "inter.broker.protocol.version=2.6",
        "min.insync.replicas=2",
        "replica.lag.time.max.ms=2000",
        "zookeeper.session.timeout.ms=60000",
    )
    with cluster_process(tmp_path, 3, *options) as cluster:
        servers = cluster.bootstrap_servers
        with sending(impatient_sender, servers, 3) as sender:
            acknowledge_more([sender])
            topic = sender.topic
            led = [n for n, state in enumerate(states(cluster, topic)) if state.leader != 3]
            assert led
            process = cluster.brokers[3].process
            assert process is not None
            process.send_signal(signal.SIGSTOP)
            try:
                sender.allow(1_000)
                wait_until(lambda: all(3 not in states(cluster, topic)[n].isr for n in led))
                for one in (1, 2):
                    wait_until(
                        lambda one=one: all(3 not in isrs(cluster, one, topic)[n] for n in led)  # type: ignore[misc]
                    )
                assert {state.leader_epoch for state in states(cluster, topic)} == {0}
            finally:
                process.send_signal(signal.SIGCONT)
            for one in (1, 2, 3):
                wait_until(
                    lambda one=one: isrs(cluster, one, topic) == [{1, 2, 3}] * PARTITIONS  # type: ignore[misc]
                )
            acknowledge_more([sender])
            sender.stop()
        check_everything_is_there(sender, servers)
        check_replicas_are_equal(cluster, sender)
