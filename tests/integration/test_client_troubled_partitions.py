"""CO-5: what one partition lacks holds up the reading of no other one."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

import barnabas
from barnabas.client import Consumer, ConsumerRecord, SyncAdmin, TopicPartition
from barnabas.client.admin.admin import NewTopic
from barnabas.client.errors import UnknownPartition
from barnabas.errors import UnknownTopicOrPartition
from tests.kit.waiting import until

pytestmark = pytest.mark.secured

PATIENCE_S = 60
# What waits for the troubled partition waits until the end of the test.
ENDLESS: dict[str, Any] = {
    "auto_offset_reset": "earliest",
    "allow_auto_create_topics": False,
    "request_timeout_ms": 600_000,
    "default_api_timeout_ms": 600_000,
}
NAMES = itertools.count()


@pytest.fixture(scope="module")
def cluster() -> Iterator[barnabas.Cluster]:
    """Two brokers; partition 0 of each topic is on the first one, 1 on the second."""
    config = {"auto.leader.rebalance.enable": "false"}
    with barnabas.Cluster(brokers=2, config=config, own_threads=True) as cluster:
        yield cluster


async def read(consumer: Consumer, count: int) -> list[ConsumerRecord]:
    found: list[ConsumerRecord] = []
    while len(found) < count:
        found += await consumer.poll(1_000)
    return found


def run(work: Any) -> None:
    asyncio.run(asyncio.wait_for(work, PATIENCE_S))


def partitions(topic: str, numbers: Sequence[int]) -> list[TopicPartition]:
    return [TopicPartition(topic, number) for number in numbers]


@pytest.mark.parametrize("group", ["", "beside"])
def test_a_missing_topic(
    broker: barnabas.Broker, caplog: pytest.LogCaptureFixture, group: str
) -> None:
    """It is read from its beginning once it exists."""
    number = next(NAMES)
    here, missing = f"here-{number}", f"missing-{number}"
    broker.topic(here, partitions=2)
    broker.topic(here).send(b"a", partition=0)
    broker.topic(here).send(b"b", partition=1)

    async def work() -> None:
        async with Consumer(broker.bootstrap_servers, group_id=group, **ENDLESS) as consumer:
            names = [TopicPartition(missing, 0), *partitions(here, [0, 1])]
            if group:
                await consumer.commit_sync({names[1]: 1})
            consumer.assign(names)
            assert {record.value for record in await read(consumer, 2 - bool(group))} >= {b"b"}
            reading = asyncio.create_task(read(consumer, 1))
            warned = f"{names[0]} has no position to read from yet, retrying: UNKNOWN_TOPIC"
            await until(lambda: warned in caplog.text)
            await asyncio.to_thread(lambda: broker.topic(missing, partitions=1).send(b"late"))
            assert [record.value for record in await reading] == [b"late"]

    run(work())


def test_a_partition_assigned_during_a_look_up(broker: barnabas.Broker) -> None:
    """It waits for no look-up that is under way."""
    number = next(NAMES)
    here, missing = f"here-{number}", f"missing-{number}"
    broker.topic(here, partitions=1).send(b"a")

    async def work() -> None:
        async with Consumer(broker.bootstrap_servers, **ENDLESS) as consumer:
            consumer.assign([TopicPartition(missing, 0)])
            assert await consumer.poll(100) == []
            consumer.assign([TopicPartition(missing, 0), TopicPartition(here, 0)])
            assert [record.value for record in await read(consumer, 1)] == [b"a"]

    run(work())


def test_a_missing_partition(broker: barnabas.Broker) -> None:
    """It is an error, once; then it is looked for again, and read when the topic has grown."""
    topic = f"small-{next(NAMES)}"
    broker.topic(topic, partitions=1).send(b"a")

    async def work() -> None:
        async with Consumer(broker.bootstrap_servers, **ENDLESS) as consumer:
            consumer.assign(partitions(topic, [1, 0]))
            assert [record.value for record in await read(consumer, 1)] == [b"a"]
            with pytest.raises(UnknownPartition, match="partitions 0 to 0, not 1"):
                await read(consumer, 1)
            broker.topic(topic).send(b"b")
            assert [record.value for record in await read(consumer, 1)] == [b"b"]

            def grow() -> None:
                with SyncAdmin(broker.bootstrap_servers) as admin:
                    admin.create_partitions(topic, 2)
                broker.topic(topic).send(b"c", partition=1)

            await asyncio.to_thread(grow)
            assert [record.value for record in await read(consumer, 1)] == [b"c"]

    run(work())


def test_a_question_is_still_answered_for_all_or_not(broker: barnabas.Broker) -> None:
    """As by the Java client: there, half an answer is none."""
    topic = f"asked-{next(NAMES)}"
    broker.topic(topic, partitions=1).send(b"a")
    quick = {**ENDLESS, "default_api_timeout_ms": 300}

    async def work() -> None:
        async with Consumer(broker.bootstrap_servers, **quick) as consumer:
            names = [TopicPartition(topic, 0), TopicPartition(f"{topic}-missing", 0)]
            consumer.assign(names)
            for ask in (consumer.end_offsets, consumer.beginning_offsets):
                with pytest.raises(UnknownTopicOrPartition):
                    await ask(names)
            with pytest.raises(UnknownTopicOrPartition):
                await consumer.position(names[1])
            assert [record.value for record in await read(consumer, 1)] == [b"a"]

    run(work())


@pytest.mark.parametrize("is_gone", [True, False])
def test_a_leader_that_does_not_answer(cluster: barnabas.Cluster, is_gone: bool) -> None:
    """It hangs, or it is gone and no other broker can lead."""
    topic = f"led-{next(NAMES)}"
    first, second = partitions(topic, [0, 1])
    with SyncAdmin(cluster.bootstrap_servers) as admin:
        admin.create_topics([NewTopic(topic, assignment={0: [1], 1: [2]})])
    for number in (0, 1):
        cluster.topic(topic).send(b"%d" % number, partition=number)

    async def work() -> None:
        server = cluster.bootstrap_servers.split(",")[0]
        async with Consumer(server, **ENDLESS) as consumer:
            await asyncio.to_thread(cluster.stop_broker if is_gone else cluster.pause, 2)
            consumer.assign([second, first])
            assert [record.value for record in await read(consumer, 1)] == [b"0"]
            await asyncio.to_thread(cluster.start_broker if is_gone else cluster.resume, 2)
            assert [record.value for record in await read(consumer, 1)] == [b"1"]

    run(work())
