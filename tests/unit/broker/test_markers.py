"""Markers: written wherever they can be, and as soon as they can."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from barnabas import Broker
from barnabas.broker.server import Server
from barnabas.cluster.control import LeaderAndIsr, PartitionState, StopReplica
from barnabas.protocol.api import DELETE_TOPICS
from barnabas.protocol.messages.delete_topics import DeleteTopicsRequest
from barnabas.types import TopicPartition
from tests.raw_client import RawClient
from tests.unit.broker.conftest import create
from tests.unit.broker.transactional import (
    TransactionalProducer,
    running,
    status_of,
    talk,
    wait_until,
    write_marker,
)

STUCK = TopicPartition("t", 1)


def commit_with_one_partition_stuck(client: RawClient) -> None:
    """Topic `t` is there; of its two partitions, only the first can be written."""
    producer = TransactionalProducer(client, "tx").begun()
    assert producer.add("t", 0, 1) == [0, 0]
    assert producer.end(True) == 0


def stop_hosting(server: Server, partition: TopicPartition) -> None:
    """As if its disk were out of reach: the cluster knows it, this broker has not got it."""
    server.node.replicas.apply_stop_replica(StopReplica(0, 1, (partition,), delete=False))


def host_again(server: Server, partition: TopicPartition) -> None:
    topic = server.node.image.topics[partition.topic]
    image = topic.partitions[partition.partition]
    state = PartitionState(partition, topic.topic_id, image, {}, is_new=False)
    server.node.replicas.apply_leader_and_isr(LeaderAndIsr(0, 1, (state,)))


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
    """PR-7: all of them, for nobody knows which were written. The outcome is the decided one."""

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
            assert ends == [2, 1], "a second marker ends nothing and harms nobody"

    asyncio.run(scenario())


def test_a_topic_that_is_gone_keeps_nobody_waiting(tmp_path: Path) -> None:
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


def test_markers_tell_one_outcome_from_the_other(tmp_path: Path) -> None:
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
