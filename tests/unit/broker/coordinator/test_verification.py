"""Transactional writes: into open transactions only (KIP-890), so that none can hang."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from barnabas import Broker
from barnabas.errors import (
    InvalidProducerEpoch,
    InvalidProducerIdMapping,
    InvalidTxnState,
    NotEnoughReplicas,
    TransactionAbortable,
    TransactionalIdAuthorizationFailed,
)
from barnabas.protocol.api import DESCRIBE_PRODUCERS, LIST_OFFSETS
from barnabas.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersTopic,
)
from barnabas.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from tests.kit.broker.topics import create
from tests.kit.broker.transactional import TransactionalProducer, running, talk, write_marker
from tests.kit.raw_client import RawClient
from tests.kit.waiting import wait_until


def ends_of(client: RawClient, topic: str, partition: int = 0) -> tuple[int, int]:
    """Where readers of committed records stop, and where the others do."""
    ends = []
    for isolation_level in (1, 0):
        wanted = ListOffsetsPartition(partition_index=partition, timestamp=-1)
        topics = [ListOffsetsTopic(name=topic, partitions=[wanted])]
        request = ListOffsetsRequest(replica_id=-1, isolation_level=isolation_level, topics=topics)
        answer: Any = client.call(LIST_OFFSETS, 5, request)
        ends.append(answer.topics[0].partitions[0].offset)
    return ends[0], ends[1]


@pytest.fixture
def producer(client: RawClient, topic: str) -> TransactionalProducer:
    return TransactionalProducer(client, topic).begun()


def test_readers_of_committed_records_wait_for_the_end(
    client: RawClient, topic: str, producer: TransactionalProducer
) -> None:
    """PR-7, CO-6"""
    producer.add(topic, 0)
    assert [producer.send(topic, 0), producer.send(topic, 0)] == [0, 0]
    assert ends_of(client, topic) == (0, 2)
    producer.end(True)
    wait_until(lambda: ends_of(client, topic) == (3, 3))


@pytest.mark.parametrize(("version", "error"), [(10, InvalidTxnState), (11, TransactionAbortable)])
def test_a_partition_that_was_not_added(
    client: RawClient,
    topic: str,
    producer: TransactionalProducer,
    version: int,
    error: type[InvalidTxnState],
) -> None:
    producer.add(topic, 0)
    assert producer.send(topic, 1, version=version) == error.code
    assert ends_of(client, topic, 1) == (0, 0)


@pytest.mark.parametrize("is_commit", [True, False])
def test_a_late_batch_begins_nothing(
    client: RawClient, topic: str, producer: TransactionalProducer, is_commit: bool
) -> None:
    """A write that arrives behind the marker would keep readers waiting for ever."""
    producer.add(topic, 0)
    producer.send(topic, 0)
    producer.end(is_commit)
    wait_until(lambda: ends_of(client, topic) == (2, 2))
    assert producer.send(topic, 0) == InvalidTxnState.code
    assert ends_of(client, topic) == (2, 2)


def test_other_producers_of_the_id(
    client: RawClient, topic: str, producer: TransactionalProducer
) -> None:
    new = TransactionalProducer(client, topic).begun()
    new.add(topic, 0)
    assert producer.send(topic, 0) == InvalidProducerEpoch.code
    stranger = TransactionalProducer(client, topic)
    stranger.producer_id, stranger.epoch = new.producer_id + 1_000, 0
    assert stranger.send(topic, 0) == InvalidProducerIdMapping.code


def test_a_transaction_without_a_transactional_id(
    topic: str, producer: TransactionalProducer
) -> None:
    producer.add(topic, 0)
    producer.name = None  # type: ignore[assignment]
    assert producer.send(topic, 0) == TransactionalIdAuthorizationFailed.code


def test_the_log_alone_is_asked_after_the_first_batch(tmp_path: Path) -> None:
    """And a coordinator that is not there is a reason to try again, not to give up."""

    def begin(client: RawClient) -> None:
        create(client, "t", 2)
        producers.append(TransactionalProducer(client, "tx").begun())
        producers[0].add("t", 0, 1)
        assert producers[0].send("t", 0) == 0

    def go_on(client: RawClient) -> None:
        producers[0].client = client
        assert producers[0].send("t", 0) == 0
        assert producers[0].send("t", 1) == NotEnoughReplicas.code

    producers: list[TransactionalProducer] = []

    async def scenario() -> None:
        async with running(tmp_path) as server:
            await talk(server, begin)
            server.node.transactions.drop(0)
            await talk(server, go_on)

    asyncio.run(scenario())


def test_it_can_be_switched_off() -> None:
    config = {
        "transaction.partition.verification.enable": "false",
        "transaction.state.log.num.partitions": "1",
    }
    with Broker(config=config) as broker, RawClient(broker.bootstrap_servers) as client:
        create(client, "t")
        assert TransactionalProducer(client, "tx").begun().send("t", 0) == 0
        assert ends_of(client, "t") == (0, 1)


def test_what_hangs_is_found_and_ended(
    client: RawClient, topic: str, producer: TransactionalProducer
) -> None:
    """KIP-664: an admin sees where a transaction began, and aborts it in that partition."""
    producer.add(topic, 0)
    producer.send(topic, 0)
    wanted = DescribeProducersTopic(name=topic, partition_indexes=[0])
    answer: Any = client.call(DESCRIBE_PRODUCERS, 0, DescribeProducersRequest(topics=[wanted]))
    (found,) = answer.topics[0].partitions[0].active_producers
    assert (found.producer_id, found.current_txn_start_offset) == (producer.producer_id, 0)
    owner = (producer.producer_id, producer.epoch)
    assert write_marker(client, topic, owner, found.coordinator_epoch) == 0
    assert ends_of(client, topic) == (2, 2)


def test_an_open_transaction_outlives_the_expiry_of_its_producer(tmp_path: Path) -> None:
    """`producer.id.expiration.ms` counts for producers without an open transaction alone."""

    def begin(client: RawClient) -> None:
        create(client, "t")
        producers.append(TransactionalProducer(client, "tx").begun())
        producers[0].add("t", 0)
        assert producers[0].send("t", 0) == 0  # the record's time is years ago

    def end(client: RawClient) -> None:
        assert ends_of(client, "t") == (0, 1)
        producers[0].client = client
        assert producers[0].end(True) == 0
        wait_until(lambda: ends_of(client, "t") == (2, 2))

    producers: list[TransactionalProducer] = []

    async def scenario() -> None:
        async with running(tmp_path) as server:
            await talk(server, begin)
            for replica in server.node.replicas:
                replica.log.producers.expire(server.node.clock.wall_ms())
            await talk(server, lambda client: None)
        async with running(tmp_path) as server:
            await talk(server, end)

    asyncio.run(scenario())
