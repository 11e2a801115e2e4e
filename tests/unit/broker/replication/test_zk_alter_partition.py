"""ISRs that leaders below inter.broker.protocol.version 2.7 write themselves."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator, Sequence

import pytest

from barnabas import Cluster
from barnabas.broker.partitions.alter_partition_queue import PendingProposal
from barnabas.broker.replication.zk_alter_partition import Pace, ZkAlterPartition
from barnabas.broker.server import Server
from barnabas.cluster import layout
from barnabas.cluster.controller_requests import IsrAnswer, IsrMember, IsrProposal
from barnabas.cluster.image import PartitionImage
from barnabas.cluster.store import (
    MetadataError,
    Operation,
    OutcomeUnknown,
    Set,
)
from barnabas.controller.topics import NewTopic
from barnabas.errors import InvalidUpdateVersion, UnknownTopicOrPartition
from barnabas.types import TopicPartition
from tests.kit.raw_client import PATIENCE_S
from tests.kit.waiting import until

SOON = Pace(check_every_ms=20, linger_ms=60, max_delay_ms=600)
PARTITIONS = 4
NAMES = [TopicPartition("t", number) for number in range(PARTITIONS)]


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    """Broker 1 is the controller, broker 2 leads; no follower is ever too slow."""
    config = {
        "inter.broker.protocol.version": "2.6",
        "replica.lag.time.max.ms": "600000",
        "log.cleaner.enable": "false",
    }
    with Cluster(3, config=config) as made:
        yield made


def play(cluster: Cluster, scene: Callable[[Server], Awaitable[None]]) -> None:
    """On the loop of the brokers, within bounds; the leader's four partitions are known to it."""

    async def whole() -> None:
        topic = NewTopic("t", assignment={number: [2, 3, 1] for number in range(PARTITIONS)})
        await cluster.server(1).node.controller.create_topic(topic)
        leader = cluster.server(2)
        await until(lambda: "t" in leader.node.image.topics)
        await scene(leader)

    cluster.thread.run(asyncio.wait_for(whole(), 2 * PATIENCE_S))


def proposals(
    leader: Server, *isr: int, names: Sequence[TopicPartition] = NAMES
) -> list[IsrProposal]:
    """As its partitions would make them."""
    topic_id = leader.node.image.topics["t"].topic_id
    made = []
    for name in names:
        partition = leader.node.replicas.leader_of(name).partition
        members = tuple(IsrMember(each, -1) for each in isr)
        made.append(
            IsrProposal(name, topic_id, partition.leader_epoch, members, partition.partition_epoch)
        )
    return made


class Writes(ZkAlterPartition):
    """Of the leader's partitions."""

    __slots__ = ("_leader",)

    def __init__(self, leader: Server, pace: Pace) -> None:
        node = leader.node
        super().__init__(node.view, node.store, node.clock, pace)
        self._leader = leader

    async def write(self, proposals: Sequence[IsrProposal]) -> dict[TopicPartition, IsrAnswer]:
        leader_of = self._leader.node.replicas.leader_of
        loop = asyncio.get_running_loop()
        return await self(
            [
                PendingProposal(leader_of(NAMES[0]).partition, each, loop.create_future())
                for each in proposals
            ]
        )


async def states(leader: Server) -> list[PartitionImage | tuple[layout.StateNode, int]]:
    nodes = await leader.node.store.read_many([layout.state_path(*name) for name in NAMES])
    return [
        (layout.decode_state(*name, node.data), node.version)
        for name, node in zip(NAMES, nodes, strict=True)
        if node is not None
    ]


def announced(cluster: Cluster) -> list[list[TopicPartition]]:
    assert cluster.store is not None
    nodes = cluster.store.tree.nodes
    return [
        layout.decode_isr_change(path, node.data)
        for path, node in sorted(nodes.items())
        if path.startswith(f"{layout.ISR_CHANGES}/")
    ]


def without_controllers(cluster: Cluster) -> None:
    """No controller takes up what is announced."""
    for broker_id in cluster.broker_ids:
        election = cluster.server(broker_id).node.controller._election
        assert election._task is not None
        election._task.cancel()


def test_it_is_written_as_kafka_writes_it(cluster: Cluster) -> None:
    """RE-9: all in one commit, on the versions that the leader knows."""

    async def scene(leader: Server) -> None:
        writes = Writes(leader, SOON)
        zxid = cluster.store.tree.zxid
        answers = await writes.write(proposals(leader, 2, 3))
        assert cluster.store.tree.zxid == zxid + 1
        assert answers == dict.fromkeys(NAMES, IsrAnswer(0, 2, 0, (2, 3), 1))
        assert await states(leader) == [(layout.StateNode(2, 0, (2, 3), 1), 1)] * PARTITIONS
        node = await leader.node.store.read(layout.state_path(*NAMES[0]))
        assert node is not None and json.loads(node.data or b"") == {
            "controller_epoch": 1,
            "leader": 2,
            "version": 1,
            "leader_epoch": 0,
            "isr": [2, 3],
        }
        writes.close()

    play(cluster, scene)


def test_what_others_have_written_is_not_written_over(cluster: Cluster) -> None:
    """RE-9: INVALID_UPDATE_VERSION; the others of the same request are written all the same."""

    async def scene(leader: Server) -> None:
        store = leader.node.store
        writes = Writes(leader, SOON)
        wished = proposals(leader, 2, 3)
        other = layout.encode_state(layout.StateNode(2, 0, (2, 1), 1))
        same = layout.encode_state(layout.StateNode(2, 0, (2, 3), 1))
        await store.commit(
            [Set(layout.state_path(*NAMES[1]), other), Set(layout.state_path(*NAMES[2]), same)]
        )
        await store.commit([Set(layout.state_path(*NAMES[3]), b"unreadable")])
        answers = await writes.write(wished)
        done = IsrAnswer(0, 2, 0, (2, 3), 1)
        lost = IsrAnswer(InvalidUpdateVersion.code)
        assert [answers[name] for name in NAMES] == [done, lost, done, lost]
        node = await store.read(layout.state_path(*NAMES[1]))
        assert node is not None and (node.data, node.version) == (other, 1)
        await until(lambda: not announced(cluster) and writes._task is None)
        writes.close()

    play(cluster, scene)


@pytest.mark.parametrize("happens", [True, False])
def test_a_write_whose_answer_is_lost_is_tried_again(cluster: Cluster, happens: bool) -> None:
    """RE-9: if it has happened it is found to be done."""

    async def scene(leader: Server) -> None:
        writes = Writes(leader, SOON)
        commit, store = leader.node.store.commit, leader.node.store

        async def lossy(operations: Sequence[Operation]) -> list[str | int]:
            store.commit = commit  # type: ignore[method-assign]
            if happens:
                await commit(operations)
            raise OutcomeUnknown(operations[0].path, "the answer is lost")

        store.commit = lossy  # type: ignore[method-assign]
        wished = proposals(leader, 2, 3)
        with pytest.raises(OutcomeUnknown):
            await writes.write(wished)
        assert await writes.write(wished) == dict.fromkeys(NAMES, IsrAnswer(0, 2, 0, (2, 3), 1))
        assert await states(leader) == [(layout.StateNode(2, 0, (2, 3), 1), 1)] * PARTITIONS
        writes.close()

    play(cluster, scene)


def test_a_state_that_is_gone_is_of_a_partition_that_is_unknown(cluster: Cluster) -> None:
    async def scene(leader: Server) -> None:
        writes = Writes(leader, SOON)
        wished = proposals(leader, 2, 3)
        missing = wished[0]._replace(topic_partition=NAMES[1])
        assert cluster.store is not None
        del cluster.store.tree.nodes[layout.state_path(*NAMES[0])]
        answers = await writes.write([wished[0], missing])
        assert answers[NAMES[0]] == IsrAnswer(UnknownTopicOrPartition.code)
        assert answers[NAMES[1]].error_code == 0
        writes.close()

    play(cluster, scene)


def test_it_is_announced_when_no_other_change_has_followed(cluster: Cluster) -> None:
    """RE-9: many changes in one node; and what could not be announced is not forgotten."""

    async def scene(leader: Server) -> None:
        without_controllers(cluster)
        await asyncio.sleep(0)
        writes = Writes(leader, Pace(20, 150, 60_000))
        for name in NAMES[:3]:
            await writes.write(proposals(leader, 2, 3, names=[name]))
            await asyncio.sleep(0.02)
        assert announced(cluster) == []
        commit, store = leader.node.store.commit, leader.node.store
        refused = 0

        async def refuse(operations: Sequence[Operation]) -> list[str | int]:
            nonlocal refused
            refused += 1
            raise MetadataError(operations[0].path, "the store is away")

        store.commit = refuse  # type: ignore[method-assign]
        await until(lambda: refused > 1)
        store.commit = commit  # type: ignore[method-assign]
        await until(lambda: announced(cluster))
        assert announced(cluster) == [NAMES[:3]]
        await until(lambda: writes._task is None)
        await writes.write(proposals(leader, 2, names=NAMES[3:]))
        await until(lambda: len(announced(cluster)) == 2)
        assert announced(cluster)[1] == NAMES[3:]
        writes.close()

    play(cluster, scene)


def test_it_is_announced_although_changes_never_cease(cluster: Cluster) -> None:
    """RE-9: when so long has passed since the last time."""

    async def scene(leader: Server) -> None:
        without_controllers(cluster)
        writes = Writes(leader, Pace(20, 600_000, 300))

        async def change() -> None:
            version = 0
            while not announced(cluster):
                (wished,) = proposals(leader, 2, 3 if version % 2 else 1, names=NAMES[:1])
                await writes.write([wished._replace(partition_epoch=version)])
                version += 1
                await asyncio.sleep(0.01)

        await asyncio.wait_for(change(), PATIENCE_S)
        assert announced(cluster) == [NAMES[:1]]
        writes.close()

    play(cluster, scene)


def test_nothing_is_announced_after_it_is_closed(cluster: Cluster) -> None:
    async def scene(leader: Server) -> None:
        without_controllers(cluster)
        writes = Writes(leader, SOON)
        await writes.write(proposals(leader, 2, 3))
        writes.close()
        await asyncio.sleep(0.3)
        assert announced(cluster) == []

    play(cluster, scene)
