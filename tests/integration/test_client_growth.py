"""PR-2: a partition that the topic has since a moment ago, each way of naming one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

import barnabas
from barnabas.client import Producer, ProducerRecord, SyncAdmin, SyncProducer, TopicPartition
from barnabas.client.errors import UnknownPartition
from barnabas.records.record import BatchBuilder
from tests.kit.client_transactions import make, name

pytestmark = pytest.mark.secured


def batch() -> bytes:
    builder = BatchBuilder()
    builder.append(0, None, b"x")
    return builder.build()


WAYS: dict[str, Callable[[SyncProducer, str], object]] = {
    "send": lambda producer, topic: producer.send(topic, b"x", partition=2).result(60),
    "send_many": lambda producer, topic: producer.send_many(
        [ProducerRecord(topic, b"x", partition=2)]
    ),
    "send_batch": lambda producer, topic: producer.send_batch(TopicPartition(topic, 2), batch()),
    "send_columns": lambda producer, topic: producer.send_columns(topic, [b"x"], partition=2),
}


@pytest.mark.parametrize("way", WAYS)
def test_pr_2_a_topic_that_has_grown(servers: str, way: str) -> None:
    topic = name("growing")
    asyncio.run(make(servers, topic, partitions=1))
    with SyncAdmin(servers) as admin, SyncProducer(servers) as producer:
        producer.send(topic, b"before", partition=0).result(60)
        admin.create_partitions(topic, 3)
        WAYS[way](producer, topic)
        producer.flush()
        assert producer.statistics()["records_failed_total"] == 0
        assert producer.statistics()["records_acknowledged_total"] == 2


def test_pr_2_the_partition_appears_while_send_waits(broker: barnabas.Broker) -> None:
    topic = name("growing")
    servers = broker.bootstrap_servers
    asyncio.run(make(servers, topic, partitions=1))
    with SyncAdmin(servers) as admin, SyncProducer(servers) as producer:
        producer.send(topic, b"x").result(60)
        with broker.faults.add(api="Metadata", delay_ms=1) as asked:
            waiting = producer.send(topic, b"x", partition=1)
            other = producer.send(name("other"), b"not held up").result(60)
            asked.wait(2)
            assert not waiting.done() and other.offset == 0
            admin.create_partitions(topic, 2)
            assert waiting.result(60).partition == 1


@pytest.mark.slow
def test_pr_2_many_records_for_a_wrong_number_wait_once(broker: barnabas.Broker) -> None:
    topic = name("small")
    servers = broker.bootstrap_servers
    asyncio.run(make(servers, topic, partitions=1))
    with SyncProducer(servers) as producer:
        sent = [producer.send(topic, b"x", partition=7) for _ in range(500)]
        sent.append(producer.send(topic, b"x"))
        producer.flush()
    assert {type(each.exception()) for each in sent[:-1]} == {UnknownPartition}
    assert sent[-1].result().offset == 0


def test_pr_2_no_longer_than_max_block_ms(broker: barnabas.Broker) -> None:
    topic = name("small")
    servers = broker.bootstrap_servers
    asyncio.run(make(servers, topic, partitions=1))

    async def run() -> None:
        async with Producer(servers, max_block_ms=200) as producer:
            with pytest.raises(UnknownPartition, match="has partitions 0 to 0, not 1"):
                await producer.send(topic, b"x", partition=1)
            with pytest.raises(UnknownPartition, match="has partitions 0 to 0, not 1"):
                await producer.send_batch(TopicPartition(topic, 1), batch())
            await producer.send(topic, b"x", partition=0)

    asyncio.run(run())
