"""What a producer's users expect beside `send`: against our broker, and some against Kafka."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import Counter
from random import Random
from typing import Any

import pytest

import barnabas
from barnabas.client import Producer, ProducerRecord, RecordMetadata, SyncProducer
from barnabas.client.errors import ClientClosed, RecordsPurged, SerializationError
from barnabas.client.producer.murmur2 import partition_for_key
from barnabas.client.sync.delivery import SyncDelivery
from barnabas.errors import ConfigError, InvalidTxnState, MessageTooLarge
from tests.kit.client_transactions import make, name
from tests.kit.clients.topic_records import topic_records

pytestmark = pytest.mark.secured


async def committed_values(servers: str, topic: str) -> list[bytes | None]:
    records = await topic_records(servers, topic, "read_committed")
    return sorted(record.value or b"" for record in records)


UNAVAILABLE: dict[str, Any] = {"request_timeout_ms": 60_000, "reconnect_backoff_max_ms": 50}


def test_pr_10_serializers_by_name_and_callable(servers: str) -> None:
    """In the caller's thread, before the partitioner: the key's bytes choose."""
    topic = name("serialized")
    asyncio.run(make(servers, topic))
    options = {"key.serializer": "org.apache.kafka.common.serialization.IntegerSerializer"}
    with SyncProducer(servers, value_serializer="json", **options) as producer:  # type: ignore[arg-type]
        sent = producer.send(topic, {"a": [1]}, key=7).result(120)
        assert producer.send(topic, None, key=None).result(120).offset >= 0
        with pytest.raises(SerializationError, match=f"key of a record for topic '{topic}': 'x'"):
            producer.send(topic, "v", key="x")
        with pytest.raises(SerializationError, match=r"value of a record .* json_serializer"):
            producer.send(topic, b"bytes")
    records = asyncio.run(topic_records(servers, topic))
    assert {(record.key, record.value) for record in records} == {
        (b"\0\0\0\7", b'{"a":[1]}'),
        (None, None),
    }
    (keyed,) = (record for record in records if record.key)
    assert (keyed.partition, keyed.offset) == (sent.partition, sent.offset)


class Seen:
    """An interceptor that adds a header, and remembers what it was told."""

    def __init__(self) -> None:
        self.told: list[tuple[RecordMetadata, BaseException | None]] = []
        self.is_closed = False

    def on_send(self, record: ProducerRecord) -> ProducerRecord:
        if record.value == "raise":
            raise RuntimeError("not this one")
        return record._replace(headers=[("seen", b"1")])

    def on_acknowledgement(self, metadata: RecordMetadata, error: BaseException | None) -> None:
        self.told.append((metadata, error))

    def close(self) -> None:
        self.is_closed = True


@pytest.mark.parametrize("is_sync", [False, True])
def test_pr_10_interceptors_see_every_record_before_serializers(
    broker: Any, is_sync: bool, caplog: pytest.LogCaptureFixture
) -> None:
    topic, seen = name("intercepted"), Seen()
    servers, options = broker.bootstrap_servers, {"value_serializer": "string"}
    asyncio.run(make(servers, topic))

    async def send() -> None:
        async with Producer(servers, interceptor_classes=[seen], **options) as producer:  # type: ignore[arg-type]
            for value in ("a", "raise", "b"):
                await producer.send(topic, value, partition=0)
            with pytest.raises(MessageTooLarge):
                await producer.send(topic, "x" * 2_000_000, partition=1)

    def send_in_thread() -> None:
        with SyncProducer(servers, interceptor_classes=seen, **options) as producer:  # type: ignore[arg-type]
            for value in ("a", "raise", "b"):
                producer.send(topic, value, partition=0)
            with pytest.raises(MessageTooLarge):
                producer.send(topic, "x" * 2_000_000, partition=1)

    with caplog.at_level(logging.ERROR):
        send_in_thread() if is_sync else asyncio.run(send())
    assert "interceptor Seen.on_send failed and is skipped" in caplog.text
    records = asyncio.run(topic_records(servers, topic))
    assert [(record.value, bool(record.headers)) for record in records] == [
        (b"a", True),
        (b"raise", False),
        (b"b", True),
    ]
    stored = [metadata.offset for metadata, error in seen.told if error is None]
    ((refused, why),) = [told for told in seen.told if told[1] is not None]
    assert stored == [0, 1, 2] and seen.is_closed
    assert (refused.topic, refused.partition, refused.offset) == (topic, 1, -1)
    assert isinstance(why, MessageTooLarge)


def test_a_transaction_is_a_block(servers: str) -> None:
    """PR-7: committed at its end, aborted if it raises; init_transactions is called if need be."""
    topic = name("block")

    async def run() -> None:
        await make(servers, topic)
        async with Producer(servers, transactional_id=topic) as producer:
            async with producer.transaction():
                await producer.send(topic, b"committed")
            with pytest.raises(KeyError, match="mine"):
                async with producer.transaction():
                    await producer.send(topic, b"aborted")
                    raise KeyError("mine")
            with pytest.raises(MessageTooLarge):
                async with producer.transaction():
                    await producer.send(topic, b"lost")
                    with pytest.raises(MessageTooLarge):
                        await producer.send(topic, b"x" * 2_000_000)
            async with producer.transaction():
                await producer.send(topic, b"next")
                with pytest.raises(InvalidTxnState):
                    async with producer.transaction():
                        pass
        assert await committed_values(servers, topic) == [b"committed", b"next"]

    asyncio.run(run())


def test_many_records_share_a_transactions_batches(broker: Any) -> None:
    """PR-7: none is sent outside of its transaction, however the last one ended."""
    topic, servers = name("fast"), broker.bootstrap_servers

    async def run() -> list[bytes | None]:
        await make(servers, topic, partitions=1)
        async with Producer(servers, transactional_id=topic, linger_ms=60_000) as producer:
            await producer.init_transactions()
            for number in range(6):
                producer.begin_transaction()
                for each in range(50):
                    await producer.send(topic, b"%d %d" % (number, each))
                await (
                    producer.abort_transaction() if number % 2 else producer.commit_transaction()
                )
                with pytest.raises(InvalidTxnState, match="not in a transaction"):
                    await producer.send(topic, b"outside")
            producer.begin_transaction()
            await producer.send(topic, b"lingers")
            for value in (b"x" * 2_000_000, b"also refused"):
                with pytest.raises(MessageTooLarge):
                    await producer.send(topic, value)
            await producer.abort_transaction()
        records = await topic_records(servers, topic, "read_committed")
        return [record.value for record in records]

    expected = [b"%d %d" % (number, each) for number in (0, 2, 4) for each in range(50)]
    assert asyncio.run(run()) == expected


def test_a_transaction_is_a_block_in_threads_too(broker: Any) -> None:
    """PR-7."""
    topic, servers = name("block"), broker.bootstrap_servers
    asyncio.run(make(servers, topic))
    with SyncProducer(servers, transactional_id=topic) as producer:
        with producer.transaction():
            producer.send(topic, b"committed")
        with pytest.raises(KeyError, match="mine"), producer.transaction():
            producer.send(topic, b"aborted")
            raise KeyError("mine")
        with producer.transaction():
            producer.send(topic, b"next")
    assert asyncio.run(committed_values(servers, topic)) == [b"committed", b"next"]
    with SyncProducer(servers) as producer, pytest.raises(ConfigError, match=r"transactional\.id"):
        producer.transaction().__enter__()


def test_purge_fails_what_was_not_sent(broker: Any) -> None:
    """PR-8: each record has its outcome, and the producer goes on."""
    topic, servers = name("purged"), broker.bootstrap_servers
    asyncio.run(make(servers, topic))
    with SyncProducer(servers, linger_ms=3_600_000) as producer:
        deliveries = [producer.send(topic, b"%d" % n) for n in range(50)]
        assert producer.purge() == 50
        for delivery in deliveries:
            with pytest.raises(RecordsPurged, match=r"purge\(\) was called"):
                delivery.result(120)
        assert producer.purge() == 0
        kept = producer.send(topic, b"kept")
        producer.flush()
        assert kept.result(120).topic == topic
        assert producer.statistics()["records_unfinished"] == 0
    assert [record.value for record in asyncio.run(topic_records(servers, topic))] == [b"kept"]


def test_purge_reaches_what_waits_for_a_topic() -> None:
    """PR-8: for one that no broker has described yet, and for a broker that is away."""
    with barnabas.Broker() as broker:
        producer = SyncProducer(broker.bootstrap_servers, **UNAVAILABLE)
        producer.send("left", b"stored").result(120)
    deliveries = [producer.send("left", b"v"), producer.send("unknown", b"v")]
    purged = 0
    while purged < 2:  # the first is in flight until its connection is seen to be lost
        purged += producer.purge()
    for delivery in deliveries:
        with pytest.raises(RecordsPurged):
            delivery.result(120)
    producer.close(timeout_ms=0)


def test_flush_and_close_take_no_longer_than_they_may() -> None:
    """PR-8: what is left has an outcome, which says what to do."""

    async def run() -> None:
        with barnabas.Broker() as broker:
            producer = Producer(broker.bootstrap_servers, **UNAVAILABLE)
            await producer.start()
            await (await producer.send("left", b"stored"))
        delivery = await producer.send("left", b"v")
        with pytest.raises(TimeoutError, match=r"^1 record not acknowledged after timeout_ms"):
            await producer.flush(timeout_ms=20)
        assert not delivery.done()
        await producer.close(timeout_ms=20)
        with pytest.raises(ClientClosed, match=r"timeout_ms of close\(\): raise it"):
            await delivery
        await producer.close()

    asyncio.run(run())


def test_flush_and_close_of_threads_take_no_longer_than_they_may() -> None:
    """PR-8: also for a topic that no broker has described yet."""
    with barnabas.Broker() as broker:
        producer = SyncProducer(broker.bootstrap_servers, **UNAVAILABLE)
        producer.send("left", b"stored").result(120)
    left = producer.send("left", b"v")
    unknown = producer.send("unknown", b"v")
    with pytest.raises(TimeoutError, match="timeout_ms, and stay queued"):
        producer.flush(timeout_ms=20)
    producer.close(timeout_ms=20)
    for delivery in (left, unknown):
        with pytest.raises(ClientClosed, match="raise it"):
            delivery.result(120)
    for wrong in (-1, float("nan"), "soon"):
        with pytest.raises((ValueError, TypeError), match="timeout_ms"):
            producer.close(timeout_ms=wrong)  # type: ignore[arg-type]


def test_a_callback_goes_with_the_record(broker: Any) -> None:
    """PR-8: in order, with a key or without, on a thread where waiting is allowed."""
    topic, servers = name("callback"), broker.bootstrap_servers
    asyncio.run(make(servers, topic, partitions=1))
    told: list[int] = []
    threads = set()

    def report(delivery: SyncDelivery) -> None:
        threads.add(threading.current_thread().name)
        told.append(delivery.result(120).offset)

    with SyncProducer(servers, batch_size=500) as producer:
        for number in range(500):
            key = b"k" if number % 3 else None
            producer.send(topic, b"v", key, on_delivery=report)
        producer.flush()
        assert told == list(range(500))
        with pytest.raises(TypeError, match="on_delivery: must be callable, not int"):
            producer.send(topic, b"v", on_delivery=5)  # type: ignore[typeddict-item]
    assert threads == {"barnabas-producer-callbacks"}

    async def run() -> list[int]:
        seen: list[int] = []
        async with Producer(servers) as producer:
            for _ in range(10):
                await producer.send(
                    topic, b"v", on_delivery=lambda each: seen.append(each.result().offset)
                )
        return seen

    assert asyncio.run(run()) == list(range(500, 510))


def test_records_of_every_kind_keep_their_order(broker: Any) -> None:
    """PR-3: with and without a key, header, time or partition: one partition, one order."""
    topic, servers = name("order"), broker.bootstrap_servers
    kinds: list[dict[str, Any]] = [
        {},
        {"key": b"k"},
        {"headers": [("h", b"1")]},
        {"partition": 0},
        {"timestamp_ms": 5},
        {"value": b"x" * 900},
        {"partition": 0, "value": b"x" * 900},
        {"value": bytearray(b"mutable")},
        {"value": None},
    ]

    random = Random(1)

    async def run() -> None:
        await make(servers, topic, partitions=1)
        options: dict[str, Any] = {"max_in_flight_requests_per_connection": 1}
        async with Producer(servers, batch_size=1_000, **options) as producer:
            sent = []
            for number in range(2_000):
                kind = {"value": b"v%d" % number, **random.choice(kinds)}
                sent.append(await producer.send(topic, **kind))
            assert [(await each).offset for each in sent] == list(range(2_000))

    asyncio.run(run())


def test_nobody_overtakes_who_waits_for_room(broker: Any) -> None:
    """PR-3: what fits does not go before what came first."""
    topic = name("line")

    async def run() -> None:
        await make(broker.bootstrap_servers, topic, partitions=1)
        options: dict[str, Any] = {"batch_size": 2_000, "linger_ms": 60_000}
        async with Producer(broker.bootstrap_servers, buffer_memory=8_000, **options) as producer:
            first = await producer.send(topic, b"x" * 10)
            await producer.flush()
            await producer.send(topic, b"x" * 500)
            waiting = asyncio.create_task(producer.send(topic, b"x" * 7_800))
            await asyncio.sleep(0)
            last = await producer.send(topic, b"small")
            large = await waiting
            await producer.flush()
            assert first.result().offset < large.result().offset < last.result().offset

    asyncio.run(run())


def test_keyed_records_do_not_move_those_without_a_key(broker: Any) -> None:
    """PR-2: sticky counts the bytes of the records whose partition it chose."""
    topic = name("sticky")

    async def run() -> None:
        await make(broker.bootstrap_servers, topic)
        options: dict[str, Any] = {"batch_size": 2_000, "linger_ms": 60_000}
        async with Producer(broker.bootstrap_servers, **options) as producer:
            sent = await producer.send(topic, b"v")
            await producer.flush()
            first = sent.result()
            key = next(
                b"%d" % n for n in range(99) if partition_for_key(b"%d" % n, 3) == first.partition
            )
            chosen = set()
            for _ in range(6):
                chosen.add((await producer.send(topic, b"v")).batch.topic_partition.partition)
                for _ in range(40):
                    await producer.send(topic, b"x" * 50, key)
            assert chosen == {first.partition}

    asyncio.run(run())


def test_a_record_is_too_large_in_an_open_batch_too(broker: Any) -> None:
    """PR-3: max.request.size, whatever batch.size is."""

    async def run() -> None:
        options: dict[str, Any] = {"batch_size": 3_000_000, "linger_ms": 3_600_000}
        async with Producer(broker.bootstrap_servers, **options) as producer:
            for _ in range(3):
                await producer.send("large", b"v")
            with pytest.raises(MessageTooLarge, match=r"larger than 1048576 \(max.request.size\)"):
                await producer.send("large", b"x" * 2_000_000)

    asyncio.run(run())


def test_a_producer_shows_itself(broker: Any) -> None:
    """UX-3: options in every form; names to choose from; counters with their units."""
    servers = broker.bootstrap_servers
    with SyncProducer({"bootstrap.servers": servers, "client.id": "me"}, acks="all") as producer:
        producer.send("shown", b"v").result(120)
        assert repr(producer) == f"SyncProducer('{servers}', client_id='me', running)"
        assert {"send", "send_columns", "flush", "transaction", "metrics"} <= set(dir(producer))
        assert not [each for each in dir(producer) if each.startswith("_")]
        figures = producer.metrics()
        assert figures["records_acknowledged_total"] == 1
        assert figures["batches_acknowledged_total"] == figures["requests_answered_total"] == 1
        assert figures["records_per_batch_average"] == 1
        assert figures["records_unfinished"] == figures["buffer_used_bytes"] == 0
        assert all(callable(getattr(producer, each)) for each in dir(producer))
        assert all(getattr(producer, each).__doc__ for each in dir(producer))
    assert repr(producer).endswith("not running)")
    with pytest.raises(ClientClosed):
        producer.purge()
    with pytest.raises(ConfigError, match=r"bootstrap\.servers is missing"):
        SyncProducer()
    with SyncProducer(**{"bootstrap.servers": servers, "acks": "all"}) as producer:
        assert producer.partitions_for("shown") == [0]


def test_a_stay_of_records_without_a_key_is_one_batch(broker: Any) -> None:
    """PR-2: no batch is begun for the few bytes that a full one leaves of batch.size."""
    topic = name("stays")

    async def run() -> None:
        await make(broker.bootstrap_servers, topic)
        options: dict[str, Any] = {"batch_size": 2_000, "linger_ms": 60_000}
        async with Producer(broker.bootstrap_servers, **options) as producer:
            batches = [(await producer.send(topic, b"x" * 50)).batch for _ in range(500)]
            counts = Counter(batch.number for batch in batches)
            places = [batch.topic_partition for batch in dict.fromkeys(batches)]
        assert len(set(places)) == 3
        assert {*list(counts.values())[:-1]} == {23}, "61 bytes and 23 times 81 of 2,000"

    asyncio.run(run())
