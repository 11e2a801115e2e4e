"""Markers: written wherever they can be, and as soon as they can."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from barnabas import Broker
from barnabas.broker.coordinator.markers import MarkerRoutes, MarkerWriter
from barnabas.broker.server import Server
from barnabas.cluster.controller_requests import LeaderAndIsr, PartitionState, StopReplica
from barnabas.cluster.image import PartitionImage
from barnabas.cluster.layout import GROUP_TOPIC
from barnabas.coordinator.decision import Markers
from barnabas.coordinator.offsets import GroupOffsets
from barnabas.protocol.api import DELETE_TOPICS, FIND_COORDINATOR, WRITE_TXN_MARKERS
from barnabas.protocol.frame import encode_request
from barnabas.protocol.messages.delete_topics import DeleteTopicsRequest
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest
from barnabas.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitPartition,
    TxnOffsetCommitRequest,
    TxnOffsetCommitTopic,
)
from barnabas.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from barnabas.types import TopicPartition
from tests.kit.broker.replicated import meet
from tests.kit.broker.topics import create
from tests.kit.broker.transactional import (
    TransactionalProducer,
    running,
    status_of,
    talk,
    write_marker,
)
from tests.kit.raw_client import RawClient, once_found
from tests.kit.waiting import until, wait_until

STUCK = TopicPartition("t", 1)


def commit_with_one_partition_stuck(client: RawClient) -> None:
    """Topic `t` is there; of its two partitions, only the first can be written."""
    producer = TransactionalProducer(client, "tx").begun()
    assert producer.add("t", 0, 1) == [0, 0]
    assert producer.end(True) == 0


def stop_hosting(server: Server, partition: TopicPartition) -> None:
    """As if its disk were out of reach: the cluster knows it, this broker has not got it."""
    server.parts.partitions.role_changes.apply_stop_replica(
        StopReplica(0, 1, (partition,), delete=False)
    )


def host_again(server: Server, partition: TopicPartition) -> None:
    topic = server.node.image.topics[partition.topic]
    image = topic.partitions[partition.partition]
    state = PartitionState(partition, topic.topic_id, image, {}, is_new=False)
    server.parts.partitions.role_changes.apply_leader_and_isr(LeaderAndIsr(0, 1, (state,)))


def test_what_cannot_be_written_is_tried_until_it_can(tmp_path: Path) -> None:
    """PR-7: the outcome is decided, and the transaction is not complete."""

    def see_it_wait(client: RawClient) -> None:
        commit_with_one_partition_stuck(client)
        time.sleep(0.15)
        assert status_of(client, "tx") == "PrepareCommit"

    def see_it_end(client: RawClient) -> None:
        wait_until(lambda: status_of(client, "tx") == "CompleteCommit")

    async def scenario() -> None:
        async with running(tmp_path) as server:
            await talk(server, lambda client: create(client, "t", 2))
            stop_hosting(server, STUCK)
            await talk(server, see_it_wait)
            first, other = (server.node.replicas.store.logs[TopicPartition("t", i)] for i in (0, 1))
            assert (first.log_end_offset, other.log_end_offset) == (1, 0)
            host_again(server, STUCK)
            await talk(server, see_it_end)
            assert (first.log_end_offset, other.log_end_offset) == (1, 1)

    asyncio.run(scenario())


def test_the_next_start_sends_the_markers_again(tmp_path: Path) -> None:
    """PR-7: all of them: which were written is not known. The outcome is the decided one."""

    async def scenario() -> None:
        async with running(tmp_path) as server:
            await talk(server, lambda client: create(client, "t", 2))
            stop_hosting(server, STUCK)
            await talk(server, commit_with_one_partition_stuck)
        async with running(tmp_path) as server:
            await talk(
                server,
                lambda client: wait_until(lambda: status_of(client, "tx") == "CompleteCommit"),
            )
            logs = server.node.replicas.store.logs
            ends = [logs[TopicPartition("t", i)].log_end_offset for i in (0, 1)]
            assert ends == [2, 1], "a second marker ends nothing and does no harm"

    asyncio.run(scenario())


def test_a_deleted_topic_does_not_hold_up_the_transaction(tmp_path: Path) -> None:
    def scenario_of(client: RawClient) -> None:
        commit_with_one_partition_stuck(client)
        assert status_of(client, "tx") == "PrepareCommit"
        request = DeleteTopicsRequest(topic_names=["t"], timeout_ms=60_000)
        client.call(DELETE_TOPICS, 5, request)
        wait_until(lambda: status_of(client, "tx") == "CompleteCommit")

    async def scenario() -> None:
        async with running(tmp_path) as server:
            await talk(server, lambda client: create(client, "t", 2))
            stop_hosting(server, STUCK)
            await talk(server, scenario_of)

    asyncio.run(scenario())


def test_a_broker_without_metadata_takes_no_partition_for_deleted(tmp_path: Path) -> None:
    """PR-7: before the controller's first UpdateMetadata no topic is known, and none has gone."""
    producers = []

    def begin(client: RawClient) -> None:
        producers.append(TransactionalProducer(client, "tx").begun())
        assert producers[0].add("t", 0, 1) == [0, 0]
        assert producers[0].end(True) == 0

    async def scenario() -> None:
        async with running(tmp_path) as server:
            await talk(server, lambda client: create(client, "t", 2))
            stop_hosting(server, STUCK)
            await talk(server, begin)
            node = server.node
            shard, known = node.transactions.shard_of("tx"), node.image
            owner = (producers[0].producer_id, producers[0].epoch)
            markers = Markers("tx", *owner, True, shard.epoch, (STUCK,))
            node.view.update(known._replace(topics={}))
            routes = MarkerRoutes(node.view, node.replicas, node.marker_append, None)
            MarkerWriter(routes).send(shard, markers)
            node.view.update(known)
            node.replicas.write_staged()
            statuses: list[object] = []
            await talk(server, lambda client: statuses.append(status_of(client, "tx")))
            assert statuses == ["PrepareCommit"]

    asyncio.run(scenario())


def test_markers_distinguish_commits_from_aborts(tmp_path: Path) -> None:
    """PR-7: readers of committed records skip the aborted transaction and no other."""
    owners = []

    def end_both_ways(client: RawClient) -> None:
        create(client, "t")
        producer = TransactionalProducer(client, "tx").begun()
        owners.append(producer.producer_id)
        for is_commit in (True, False, True):
            assert producer.add("t", 0) == [0]
            assert producer.send("t", 0) == 0
            assert producer.end(is_commit) == 0

    async def scenario() -> None:
        async with running(tmp_path) as server:
            await talk(server, end_both_ways)
            log = server.node.replicas.store.logs[TopicPartition("t", 0)]
            assert log.log_end_offset == 6
            assert log.aborted_transactions(0, 6) == [(owners[0], 2)]

    asyncio.run(scenario())


@pytest.mark.slow
def test_many_partitions_get_theirs_in_turns(tmp_path: Path) -> None:
    """No step of the loop takes longer for a transaction that spans hundreds of partitions."""

    def commit_all(client: RawClient) -> None:
        create(client, "t", 250)
        producer = TransactionalProducer(client, "tx").begun()
        assert set(producer.add("t", *range(250))) == {0}
        assert producer.end(True) == 0
        wait_until(lambda: producer.status == "CompleteCommit")

    async def scenario() -> None:
        async with running(tmp_path) as server:
            await talk(server, commit_all)
            logs = server.node.replicas.store.logs
            assert {logs[TopicPartition("t", i)].log_end_offset for i in range(250)} == {1}

    asyncio.run(scenario())


def test_a_transaction_without_partitions_is_complete_at_once(
    client: RawClient, topic: str
) -> None:
    producer = TransactionalProducer(client, topic).begun()
    producer.add(topic)
    assert producer.end(True) == 0
    assert producer.status == "CompleteCommit"


def test_a_later_producer_in_the_partition_has_ended_it_already(
    client: RawClient, topic: str
) -> None:
    producer = TransactionalProducer(client, topic).begun()
    producer.add(topic, 0, 1)
    write_marker(client, topic, (producer.producer_id, producer.epoch + 1), 0)
    producer.end(True)
    wait_until(lambda: producer.status == "CompleteCommit")


def test_a_deposed_coordinator_completes_nothing(client: RawClient, topic: str) -> None:
    producer = TransactionalProducer(client, topic).begun()
    producer.add(topic, 0)
    write_marker(client, topic, (producer.producer_id, producer.epoch), 1_000_000)
    producer.end(True)
    time.sleep(0.15)
    assert producer.status == "PrepareCommit"


def test_a_producer_that_is_silent_for_too_long_is_fenced() -> None:
    """PR-7: the transaction is aborted, and its producer with it."""
    config = {
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": "50",
        "transaction.state.log.num.partitions": "1",
    }
    with Broker(config=config) as broker, RawClient(broker.bootstrap_servers) as client:
        create(client, "t")
        producer = TransactionalProducer(client, "tx", timeout_ms=100).begun()
        producer.add("t", 0)
        wait_until(lambda: producer.status == "CompleteAbort")
        assert producer.end(True) == 90
        assert producer.begun().epoch == 2


# --- what holds up what --------------------------------------------------------------------------

GROUP = "g"


def set_isr(server: Server, partition: TopicPartition, *isr: int) -> None:
    """As the controller says it; of broker 5, if it has a replica too, nothing is ever heard."""
    meet(server.parts, {server.broker_id: server.node.view.broker_epoch, 5: 1})
    known = server.node.replicas.leader_of(partition).partition
    image = PartitionImage(
        server.broker_id, known.leader_epoch, isr, isr, known.partition_epoch + 1, 1
    )
    topic_id = server.node.image.topics[partition.topic].topic_id
    state = PartitionState(partition, topic_id, image, {}, is_new=False)
    server.parts.partitions.role_changes.apply_leader_and_isr(LeaderAndIsr(0, 1, (state,)))


def commit_in_transaction(server: Server, producer_id: int) -> GroupOffsets:
    """The group's offsets, of which one is pending."""
    shard = server.node.groups.shard_of(GROUP)
    wanted = TxnOffsetCommitPartition(partition_index=0, committed_offset=42)
    request = TxnOffsetCommitRequest(
        transactional_id="tx",
        group_id=GROUP,
        producer_id=producer_id,
        producer_epoch=0,
        topics=[TxnOffsetCommitTopic(name="t", partitions=[wanted])],
    )
    shard.ask(
        lambda machine, ticket, now: machine.commit_transactional(ticket, request, now.wall_ms),
        lambda error: pytest.fail(str(error)),
    )
    server.node.replicas.write_staged()
    return shard.machine.offsets.groups[GROUP]


@pytest.mark.parametrize("has_gone", [False, True])
def test_a_marker_counts_whatever_becomes_of_its_request(tmp_path: Path, has_gone: bool) -> None:
    """PR-7, GC-3: offsets are the group's when their marker is replicated, and not when that of
    another partition is too; nor does it matter whether anybody still waits for the answer."""
    producer_id = 7

    def prepare(client: RawClient) -> None:
        create(client, "t")
        request = FindCoordinatorRequest(key=GROUP)
        once_found(lambda: client.call(FIND_COORDINATOR, 2, request))

    names = ("t", GROUP_TOPIC)
    marker = WritableTxnMarker(
        producer_id=producer_id,
        transaction_result=True,
        topics=[WritableTxnMarkerTopic(name=name, partition_indexes=[0]) for name in names],
    )

    async def scenario() -> None:
        async with running(tmp_path) as server:
            await talk(server, prepare)
            replicas = [server.node.replicas.leader_of((name, 0)) for name in names]
            offsets = commit_in_transaction(server, producer_id)
            ends = [replica.log.log_end_offset for replica in replicas]
            for name in names:
                set_isr(server, TopicPartition(name, 0), server.broker_id, 5)
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            request = WriteTxnMarkersRequest(markers=[marker])
            writer.writelines(encode_request(WRITE_TXN_MARKERS, 1, 1, "raw", request))
            await until(
                lambda: all(
                    replica.log.log_end_offset == end + 1
                    for replica, end in zip(replicas, ends, strict=True)
                )
            )
            assert offsets.pending
            if has_gone:
                writer.close()
                await until(lambda: not len(server.parts.network.routers[0]._connections))
            set_isr(server, TopicPartition(GROUP_TOPIC, 0), server.broker_id)
            await until(lambda: not offsets.pending)
            assert offsets.committed[("t", 0)][0] == 42
            if not has_gone:
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(reader.read(1), 0.05)
                writer.close()

    asyncio.run(scenario())
