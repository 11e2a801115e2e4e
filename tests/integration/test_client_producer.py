"""Our producer against our broker, over a real socket."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import pytest

from barnabas.client.admin.admin import NewTopic
from barnabas.client.consumer.consumer import Consumer
from barnabas.client.errors import ClientClosed, UnknownPartition
from barnabas.client.producer.batch import ProducerRecord
from barnabas.client.producer.delivery import RecordMetadata
from barnabas.client.producer.murmur2 import partition_for_key
from barnabas.client.producer.producer import Producer
from barnabas.client.sync.producer import SyncAdmin, SyncDelivery, SyncProducer
from barnabas.errors import InvalidTopic, MessageTooLarge, UnknownTopicOrPartition
from tests.kit.pipeline.topics import read_all

if TYPE_CHECKING:
    from barnabas.testing.embedded.broker import Broker

pytestmark = pytest.mark.secured

CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]


def create(broker: Broker, topic: str, partitions: int = 1, **configs: str) -> None:
    settings = {name.replace("_", "."): value for name, value in configs.items()}
    with SyncAdmin(broker.bootstrap_servers) as admin:
        admin.create_topics([NewTopic(topic, partitions, 1, settings)])


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("acks", ["all", "1", "0"])
def test_every_record_arrives_once_and_in_order(broker: Broker, codec: str, acks: str) -> None:
    """PR-4, PR-8: every codec under every kind of acknowledgement."""
    topic = f"arrive-{codec}-{acks}"
    create(broker, topic)
    with SyncProducer(broker.bootstrap_servers, compression_type=codec, acks=acks) as producer:
        deliveries = [producer.send(topic, b"value-%d" % n) for n in range(1_000)]
    offsets = [delivery.result(120).offset for delivery in deliveries]
    assert offsets == (list(range(1_000)) if acks != "0" else [-1] * 1_000)
    assert [record.value for record in read_all(broker, topic, 1_000)] == [
        b"value-%d" % n for n in range(1_000)
    ]


def test_a_record_keeps_its_every_field(broker: Broker) -> None:
    """PR-1: key, value, timestamp, headers and partition; null is not empty."""
    topic = "fields"
    create(broker, topic, 3)
    headers = (("h", b"1"), ("h", None), ("", b""), ("grüße", b"\xff"))
    with SyncProducer(broker.bootstrap_servers) as producer:
        sent = producer.send(topic, b"v", b"k", partition=2, timestamp_ms=1_700_000_000_123,
                             headers=headers)  # fmt: skip
        assert sent.result(120) == RecordMetadata(topic, 2, 0, 1_700_000_000_123)
        assert producer.send(topic, None, partition=2).result(120).offset == 1
        assert producer.send(topic, b"", b"", partition=2).result(120).offset == 2
    first, null, empty = read_all(broker, topic, 3)
    assert (first.key, first.value, first.headers) == (b"k", b"v", headers)
    assert (first.partition, first.timestamp_ms, first.timestamp_type) == (2, 1_700_000_000_123, 0)
    assert (null.key, null.value, null.headers) == (None, None, ())
    assert (empty.key, empty.value) == (b"", b"")


def test_keys_go_where_every_client_sends_them(broker: Broker) -> None:
    """PR-2: murmur2, so that one key stays in one partition, and in order there."""
    create(broker, "keyed", 5)
    with SyncProducer(broker.bootstrap_servers) as producer:
        for n in range(500):
            producer.send("keyed", b"%d" % n, b"user-%d" % (n % 50))
    last: dict[bytes, int] = {}
    for record in read_all(broker, "keyed", 500):
        assert record.key is not None and record.value is not None
        assert record.partition == partition_for_key(record.key, 5)
        assert last.get(record.key, -1) < int(record.value)
        last[record.key] = int(record.value)


def test_records_without_a_key_fill_all_partitions(broker: Broker) -> None:
    """PR-2: sticky changes its partition with each full batch."""
    create(broker, "keyless", 4)
    with SyncProducer(broker.bootstrap_servers, batch_size=500) as producer:
        producer.send_many(ProducerRecord("keyless", b"x" * 50) for _ in range(2_000))
    per_partition = [0] * 4
    for record in read_all(broker, "keyless", 2_000):
        per_partition[record.partition] += 1
    assert min(per_partition) > 100


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"topic": ""}, ValueError),
        ({"topic": "refused", "partition": -1}, ValueError),
        ({"topic": "refused", "timestamp_ms": -5}, ValueError),
        ({"topic": "refused", "value": "text"}, TypeError),
        ({"topic": "refused", "value": b"x" * 1_048_577}, MessageTooLarge),
    ],
)
def test_what_cannot_be_a_record_is_refused_at_once(
    broker: Broker, arguments: dict[str, Any], problem: type[Exception]
) -> None:
    """PR-1, PR-3."""
    with SyncProducer(broker.bootstrap_servers) as producer, pytest.raises(problem):
        producer.send(**{"value": b"v", **arguments})


def test_the_broker_refuses_what_is_too_large_for_the_topic(broker: Broker) -> None:
    """PR-3: and what follows the refused batch is stored all the same, once."""
    create(broker, "small", max_message_bytes="1000")
    with SyncProducer(broker.bootstrap_servers, batch_size=10) as producer:
        before = producer.send("small", b"a")
        large = producer.send("small", b"x" * 2_000)
        after = [producer.send("small", b"b%d" % n) for n in range(20)]
        with pytest.raises(MessageTooLarge, match="small-0"):
            large.result(120)
        assert before.result(120).offset == 0
        assert [delivery.result(120).offset for delivery in after] == list(range(1, 21))
    assert len(read_all(broker, "small", 21)) == 21


def test_a_partition_or_topic_that_is_not_there(broker: Broker) -> None:
    create(broker, "two", 2)
    with SyncProducer(broker.bootstrap_servers, allow_auto_create_topics=False) as producer:
        with pytest.raises(UnknownPartition, match="partitions 0 to 1, not 7"):
            producer.send("two", b"v", partition=7).result(120)
        with pytest.raises(UnknownTopicOrPartition, match="never-made"):
            producer.send("never-made", b"v").result(120)
        with pytest.raises(InvalidTopic, match="no/name"):
            producer.send("no/name", b"v").result(120)
        assert producer.send("two", b"v").result(120).offset == 0


def test_sending_to_an_unknown_topic_makes_it(broker: Broker) -> None:
    """TP-6."""
    with SyncProducer(broker.bootstrap_servers) as producer:
        assert producer.send("made-by-sending", b"v").result(120).offset == 0


def test_callbacks_hear_of_each_record_and_flush_waits_for_all(broker: Broker) -> None:
    """PR-8."""
    heard: list[int] = []
    with SyncProducer(broker.bootstrap_servers, linger_ms=60_000) as producer:

        def hear(delivery: SyncDelivery) -> None:
            heard.append(delivery.result().offset)

        deliveries = [producer.send("callbacks", b"%d" % n) for n in range(200)]
        for delivery in deliveries:
            delivery.add_done_callback(hear)
        producer.flush()
        assert all(delivery.done() for delivery in deliveries)
        assert [delivery.exception() for delivery in deliveries] == [None] * 200
    assert sorted(heard) == list(range(200))


def test_several_threads_share_a_producer(broker: Broker) -> None:
    create(broker, "threads")
    with SyncProducer(broker.bootstrap_servers) as producer:

        def work(name: int) -> None:
            for n in range(300):
                producer.send("threads", b"%d %d" % (name, n))

        threads = [threading.Thread(target=work, args=(name,)) for name in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    seen: dict[int, int] = {}
    for record in read_all(broker, "threads", 1_200):
        assert record.value is not None
        name, n = map(int, record.value.split())
        assert seen.get(name, -1) == n - 1, "each thread's records keep their order"
        seen[name] = n


def test_a_full_buffer_blocks_until_there_is_room(broker: Broker) -> None:
    """PR-3: buffer.memory bounds what waits."""
    create(broker, "bounded")

    async def work() -> None:
        async with Producer(
            broker.bootstrap_servers, buffer_memory=20_000, batch_size=1_000, max_block_ms=60_000
        ) as producer:
            deliveries = [await producer.send("bounded", b"x" * 500) for _ in range(500)]
            assert producer.statistics()["buffer_used_bytes"] <= 20_000
            assert (await deliveries[-1]).offset == 499

    asyncio.run(work())


def test_deliveries_can_be_awaited_together(broker: Broker) -> None:
    """PR-8: as the async producer gives them."""

    async def work() -> list[RecordMetadata]:
        async with Producer(broker.bootstrap_servers) as producer:
            return await asyncio.gather(
                *[await producer.send("gathered", b"v", partition=0) for _ in range(50)]
            )

    assert [metadata.offset for metadata in asyncio.run(work())] == list(range(50))


def test_a_closed_producer_says_so(broker: Broker) -> None:
    producer = SyncProducer(broker.bootstrap_servers)
    delivery = producer.send("closed", b"accepted")
    producer.close()
    producer.close()
    assert delivery.result(120).offset == 0, "close loses nothing that was accepted (PR-8)"
    with pytest.raises(ClientClosed):
        producer.send("closed", b"too late")
    assert not [t for t in threading.enumerate() if t.name == "barnabas-producer"]


def test_a_producer_finds_partitions_that_are_new(broker: Broker) -> None:
    """PR-9: at least every metadata.max.age.ms."""
    create(broker, "reborn", 1)

    async def work() -> int:
        async with Producer(broker.bootstrap_servers, metadata_max_age_ms=100) as producer:
            await (await producer.send("reborn", b"v"))
            with_two = SyncAdmin(broker.bootstrap_servers)
            with_two.delete_topics(["reborn"])
            with_two.create_topics([NewTopic("reborn", 2, 1)])
            with_two.close()
            async with Consumer(broker.bootstrap_servers) as consumer:
                while await consumer.partitions_for("reborn") != [0, 1]:
                    await asyncio.sleep(0.05)
            while True:
                await asyncio.sleep(0.05)
                try:
                    return (await (await producer.send("reborn", b"v", partition=1))).partition
                except UnknownPartition:
                    continue

    assert asyncio.run(asyncio.wait_for(work(), 120)) == 1
