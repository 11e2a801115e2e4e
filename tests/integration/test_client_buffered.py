"""What a consumer has fetched and its user has not taken: its bytes have a total."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from barnabas.client import Consumer, TopicPartition
from barnabas.client.channel import system_seams
from barnabas.client.cluster import Cluster
from barnabas.client.config import ClientConfig, ConsumerConfig
from barnabas.client.consumer.assignment import Assignment
from barnabas.client.consumer.fetcher import Fetcher

if TYPE_CHECKING:
    import barnabas

pytestmark = pytest.mark.secured

PARTITIONS = 20
BATCH = 8_000
ROUNDS = 10


def fill(broker: barnabas.Broker, topic: str) -> list[TopicPartition]:
    made = broker.topic(topic, partitions=PARTITIONS)
    for partition in range(PARTITIONS):
        for _ in range(ROUNDS):
            made.send(bytes(BATCH), partition=partition)
    return [TopicPartition(topic, partition) for partition in range(PARTITIONS)]


def test_what_is_fetched_ahead_has_a_total(broker: barnabas.Broker) -> None:
    """And everything comes all the same."""
    names = fill(broker, "total")
    config = ConsumerConfig(max_partition_fetch_bytes=BATCH + 2_000, queued_max_messages_kbytes=32)

    async def run() -> tuple[int, int]:
        cluster = Cluster(broker.bootstrap_servers, ClientConfig(), system_seams())
        assignment = Assignment("earliest")
        assignment.replace(names)
        cluster.metadata.hold(["total"])
        await cluster.start()
        fetcher = Fetcher(cluster, config, assignment)
        for state in assignment:
            state.seek(0)
        most = taken = 0
        while taken < PARTITIONS * ROUNDS:
            found = fetcher.chunks.take()
            fetcher.send_fetches(ahead=found is not None)
            if found is None:
                await fetcher.wait(cluster.seams.clock.monotonic_ms() + 1_000)
            else:
                await asyncio.sleep(0.001)  # for what is on its way
                state, chunk = found
                taken += sum(len(batch) for batch in chunk.lists(check_crcs=False))
            most = max(most, fetcher.chunks.size_bytes)
        await fetcher.close()
        await cluster.close()
        return most, fetcher.chunks.size_bytes

    most, left = asyncio.run(asyncio.wait_for(run(), 60))
    assert BATCH < most <= 32 * 1024 + BATCH + 2_000
    assert left == 0


def test_what_is_buffered_for_paused_partitions_holds_no_others_up(broker: barnabas.Broker) -> None:
    names = fill(broker, "paused")

    async def run() -> dict[int, int]:
        counts = dict.fromkeys(range(PARTITIONS), 0)
        async with Consumer(
            broker.bootstrap_servers,
            auto_offset_reset="earliest",
            max_partition_fetch_bytes=BATCH + 2_000,
            queued_max_messages_kbytes=32,
            max_poll_records=1,
        ) as consumer:
            consumer.assign(names)
            while sum(counts.values()) < ROUNDS:
                for record in await consumer.poll(1_000):
                    counts[record.partition] += 1
            consumer.pause(names[:-1])
            while counts[PARTITIONS - 1] < ROUNDS:
                for record in await consumer.poll(1_000):
                    counts[record.partition] += 1
            consumer.resume(names[:-1])
            while sum(counts.values()) < PARTITIONS * ROUNDS:
                for record in await consumer.poll(1_000):
                    counts[record.partition] += 1
        return counts

    counts = asyncio.run(asyncio.wait_for(run(), 60))
    assert set(counts.values()) == {ROUNDS}
