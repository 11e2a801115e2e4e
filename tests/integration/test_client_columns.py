"""Our producer's sending in bulk: columns, reports per batch; against our broker, and Kafka."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa  # type: ignore[import-untyped]
import pytest

from barnabas.client import ConsumerRecord, Producer, ProducerRecord, SyncProducer
from barnabas.client.errors import UnknownPartition
from barnabas.client.producer.batch_delivery import BatchDelivery
from barnabas.client.producer.murmur2 import partition_for_key
from barnabas.errors import MessageTooLarge
from tests.kit.client_transactions import make, name
from tests.kit.clients.topic_records import topic_records

pytestmark = pytest.mark.secured

PARTITIONS = 3


@pytest.mark.parametrize("codec", ["none", "lz4"])
def test_columns_arrive_as_records_do(servers: str, codec: str) -> None:
    """PR-1, PR-2, PR-8: nulls, keys, times and partitions; a report for every row."""
    topic = name("columns")
    values = [b"%06d" % n + b"x" * (n % 50) if n % 7 else None for n in range(5_000)]
    keys = [b"user-%d" % (n % 40) for n in range(5_000)]
    reported: list[BatchDelivery] = []

    async def run() -> list[ConsumerRecord]:
        await make(servers, topic)
        options: dict[str, Any] = {"compression_type": codec, "batch_size": 8_000}
        async with Producer(servers, **options) as producer:
            batches = await producer.send_columns(
                topic,
                pa.array(values, pa.binary()),
                pd.Series(keys),
                timestamps_ms=np.arange(5_000) + 1_700_000_000_000,
                on_delivery=reported.append,
            )
            offsets = await asyncio.gather(*batches)
            assert [len(each) for each in offsets] == [batch.record_count for batch in batches]
        return await topic_records(servers, topic)

    records = asyncio.run(run())
    found = {(record.partition, record.offset): record for record in records}
    assert len(found) == 5_000
    rows = set()
    for batch in reported:
        assert batch.topic == topic and batch.exception() is None
        for row, offset in zip(batch.indexes, batch.offsets, strict=True):
            record = found[batch.partition, offset]
            assert (record.value, record.key) == (values[row], keys[row])
            assert record.partition == partition_for_key(keys[row], PARTITIONS)
            assert record.timestamp_ms == 1_700_000_000_000 + row
            rows.add(row)
    assert rows == set(range(5_000))
    for partition in range(PARTITIONS):
        times = [r.timestamp_ms for r in records if r.partition == partition]
        assert times == sorted(times), "a partition's rows keep their order"


def test_columns_without_keys_spread_and_explicit_partitions_hold(servers: str) -> None:
    """PR-2: as records without a key; a partition per row, or one for all."""
    spread, given, one = name("spread"), name("given"), name("one")

    async def run() -> list[list[ConsumerRecord]]:
        await make(servers, spread, given, one)
        async with Producer(servers, batch_size=2_000) as producer:
            await producer.send_columns(spread, [b"x" * 100] * 3_000)
            await producer.send_columns(given, ["a", "b", "c"], partition=[2, 0, 2])
            await producer.send_columns(one, ["a", None, "grüße"], partition=1)
            await producer.send_columns(one, [])
        return [await topic_records(servers, topic) for topic in (spread, given, one)]

    all_spread, all_given, all_one = asyncio.run(run())
    counts = [sum(r.partition == number for r in all_spread) for number in range(PARTITIONS)]
    assert sum(counts) == 3_000 and min(counts) > 100
    assert sorted((r.partition, r.value) for r in all_given) == [(0, b"b"), (2, b"a"), (2, b"c")]
    assert [(r.partition, r.value) for r in all_one] == [
        (1, b"a"),
        (1, None),
        (1, "grüße".encode()),
    ]


def test_columns_wait_for_room(servers: str) -> None:
    """PR-3: buffer.memory bounds them, too."""
    topic = name("bounded")
    most = 0

    async def run() -> None:
        nonlocal most
        await make(servers, topic)
        async with Producer(servers, buffer_memory=50_000, batch_size=5_000) as producer:

            async def watch() -> None:
                nonlocal most
                while True:
                    most = max(most, int(producer.statistics()["buffer_used_bytes"]))
                    await asyncio.sleep(0)

            watching = asyncio.create_task(watch())
            await producer.send_columns(topic, [b"x" * 100] * 5_000, partition=0)
            watching.cancel()
        assert len(await topic_records(servers, topic)) == 5_000

    asyncio.run(run())
    assert 5_000 < most <= 50_000


@pytest.mark.parametrize(
    ("arguments", "error", "problem"),
    [
        ({"values": [b"a", 5]}, TypeError, "values: row 1 is int"),
        ({"values": [b"a"], "keys": [b"a", b"b"]}, ValueError, "keys: 2 rows, but 1 value"),
        ({"values": [b"a"], "partition": [0, 1]}, ValueError, "partition: 2 rows, but 1"),
        ({"values": [b"a"], "partition": 7}, UnknownPartition, "partitions 0 to 2, not 7"),
        ({"values": [b"a"], "partition": -1}, ValueError, "partition: -1 is not between"),
        ({"values": [b"a"], "timestamps_ms": [-5]}, ValueError, "row 0 is -5, which is negative"),
        ({"values": [b"a"], "timestamps_ms": ["now"]}, TypeError, "timestamps_ms: must be whole"),
        ({"values": [b"", b"x" * 2_000_000]}, MessageTooLarge, "row 1 makes a record of 2000031"),
        ({"values": [b"a"], "on_delivery": 5}, TypeError, "on_delivery: must be callable"),
        ({"topic": "no/topic", "values": [b"a"]}, ValueError, "'no/topic' is not a valid topic"),
    ],
)
def test_columns_that_cannot_be_sent_are_named(
    broker: Any, arguments: dict[str, Any], error: type[Exception], problem: str
) -> None:
    """PR-1: before any of their rows is sent."""
    topic = name("refused")

    async def run() -> None:
        await make(broker.bootstrap_servers, topic)
        async with Producer(broker.bootstrap_servers) as producer:
            with pytest.raises(error, match=problem):
                await producer.send_columns(**{"topic": topic, **arguments})
            assert producer.statistics()["records_unfinished"] == 0
        assert await topic_records(broker.bootstrap_servers, topic) == []

    asyncio.run(run())


def test_columns_pass_serializers_and_partitioners_of_ones_own(broker: Any) -> None:
    """PR-10, PR-2: each row then is a record like any other."""
    topic = name("own")

    async def run() -> list[ConsumerRecord]:
        await make(broker.bootstrap_servers, topic)
        async with Producer(
            broker.bootstrap_servers,
            value_serializer="long",
            partitioner=lambda topic, key, numbers: numbers[-1],
        ) as producer:
            batches = await producer.send_columns(topic, np.array([1, 2]), timestamps_ms=[5, 6])
            assert [each.indexes for each in batches] == [[0, 1]]
        return await topic_records(broker.bootstrap_servers, topic)

    first, second = asyncio.run(run())
    assert (first.value, first.partition, first.timestamp_ms) == (bytes(7) + b"\1", 2, 5)
    assert second.value == bytes(7) + b"\2"


def test_send_many_reports_each_batch(servers: str) -> None:
    """PR-8: every record is in one report, with its offset."""
    topic = name("many")
    reports: list[BatchDelivery] = []

    async def run() -> list[ConsumerRecord]:
        await make(servers, topic)
        records = [ProducerRecord(topic, b"%d" % n, partition=n % 2) for n in range(3_000)]
        async with Producer(servers, batch_size=1_000) as producer:
            assert await producer.send_many(records, on_delivery=reports.append) is None
        return await topic_records(servers, topic)

    found = {(record.partition, record.offset): record.value for record in asyncio.run(run())}
    told = {
        index: found[report.partition, offset]
        for report in reports
        for index, offset in zip(report.indexes, report.offsets, strict=True)
    }
    assert told == {n: b"%d" % n for n in range(3_000)}
    assert len(reports) < 1_500


def test_a_thread_sends_in_bulk_too(broker: Any) -> None:
    """PR-8: reports come on the thread for callbacks, where waiting is allowed."""
    topic = name("thread")
    asyncio.run(make(broker.bootstrap_servers, topic))
    told: list[int] = []
    with SyncProducer(broker.bootstrap_servers) as producer:

        def report(batch: BatchDelivery) -> None:
            producer.partitions_for(topic)  # would wait for itself on the loop
            told.extend(batch.indexes)

        producer.send_columns(topic, ["a"] * 10, on_delivery=report)
        records = (ProducerRecord(topic, b"b") for _ in range(10))
        assert producer.send_many(records, on_delivery=report) is None
        producer.flush()
        assert sorted(told) == sorted([*range(10), *range(10)])
    assert len(asyncio.run(topic_records(broker.bootstrap_servers, topic))) == 20
