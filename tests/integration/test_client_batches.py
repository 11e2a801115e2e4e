"""Whole record batches, copied from topic to topic without a look at their records."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from barnabas.client.admin.admin import NewTopic
from barnabas.client.errors import UnknownPartition
from barnabas.client.producer.batch import ProducerRecord
from barnabas.client.sync.producer import SyncAdmin, SyncConsumer, SyncProducer
from barnabas.errors import CorruptData, MessageTooLarge
from barnabas.records.batch import iterate_batches
from barnabas.types import TopicPartition

if TYPE_CHECKING:
    from barnabas.client.consumer.fetched import ConsumerRecord
    from barnabas.testing.embedded.broker import Broker

pytestmark = pytest.mark.secured

CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]
RECORDS = [(b"key %d" % n, b"value %d" % n, (("h", b"%d" % n),), 1_000 + n) for n in range(100)]


def filled(broker: Broker, topic: str, codec: str = "none") -> list[bytes]:
    """The batches of a new topic with `RECORDS`."""
    name = TopicPartition(topic, 0)
    with SyncAdmin(broker.bootstrap_servers) as admin:
        admin.create_topics([NewTopic(topic, 1), NewTopic(f"{topic}-copy", 1)])
    with SyncProducer(
        broker.bootstrap_servers, compression_type=codec, batch_size=500, linger_ms=1_000
    ) as producer:
        producer.send_many(
            ProducerRecord(topic, value, key, 0, timestamp_ms, headers)
            for key, value, headers, timestamp_ms in RECORDS
        )
    batches: list[bytes] = []
    with SyncConsumer(broker.bootstrap_servers) as consumer:
        consumer.assign([name])
        consumer.seek(name, 0)
        while consumer.position(name) < len(RECORDS):
            stored = consumer.fetch_batches(10_000)[name].records
            batches += [
                bytes(stored[at : at + header.size_bytes]) for at, header in iterate_batches(stored)
            ]
    return batches


def read(broker: Broker, topic: str, isolation_level: str) -> list[ConsumerRecord]:
    name = TopicPartition(topic, 0)
    found: list[ConsumerRecord] = []
    with SyncConsumer(broker.bootstrap_servers, isolation_level=isolation_level) as consumer:
        consumer.assign([name])
        consumer.seek(name, 0)
        end = consumer.end_offsets([name])[name]
        while consumer.position(name) < end:
            found += consumer.poll(10_000)
    return found


@pytest.mark.parametrize("codec", CODECS)
def test_records_stay_as_they_are(broker: Broker, codec: str) -> None:
    batches = filled(broker, f"plain-{codec}", codec)
    assert len(batches) > 3
    copy = TopicPartition(f"plain-{codec}-copy", 0)
    with SyncProducer(broker.bootstrap_servers) as producer:
        deliveries = [producer.send_batch(copy, batch) for batch in batches]
        producer.flush()
        offsets = [delivery.result().offset for delivery in deliveries]
    assert offsets[0] == 0 and offsets == sorted(set(offsets))
    found = read(broker, copy.topic, "read_uncommitted")
    seen = [(one.key, one.value, tuple(one.headers), one.timestamp_ms) for one in found]
    assert seen == RECORDS


def test_records_and_batches_of_one_producer_keep_their_order(broker: Broker) -> None:
    first, *_ = filled(broker, "mixed")
    copy = TopicPartition("mixed-copy", 0)
    with SyncProducer(broker.bootstrap_servers, linger_ms=10_000) as producer:
        producer.send(copy.topic, b"before")
        producer.send_batch(copy, first)
        producer.send(copy.topic, b"behind")
        producer.flush()
    values = [one.value for one in read(broker, copy.topic, "read_uncommitted")]
    assert values[0] == b"before" and values[-1] == b"behind"
    assert values[1:-1] == [value for _, value, _, _ in RECORDS[: len(values) - 2]]


def test_a_batch_belongs_to_the_transaction(broker: Broker) -> None:
    batches = filled(broker, "tx")
    copy = TopicPartition("tx-copy", 0)
    with SyncProducer(broker.bootstrap_servers, transactional_id="batches") as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send_batch(copy, batches[0])
        producer.abort_transaction()
        producer.begin_transaction()
        producer.send_batch(copy, batches[-1])
        producer.commit_transaction()
    last = RECORDS[-1][1]
    values = [one.value for one in read(broker, copy.topic, "read_committed")]
    assert values[-1] == last and RECORDS[0][1] not in values


def test_what_is_no_batch_is_refused_at_once(broker: Broker) -> None:
    first, second, *_ = filled(broker, "refused")
    copy = TopicPartition("refused-copy", 0)
    with SyncProducer(broker.bootstrap_servers, max_request_size=len(first)) as producer:
        for wrong in (b"", b"x", first[:-1], first + second, first + b"x"):
            with pytest.raises(CorruptData):
                producer.send_batch(copy, wrong)
        damaged = bytearray(first)
        damaged[-1] ^= 1
        with pytest.raises(CorruptData, match="checksum"):
            producer.send_batch(copy, damaged)
        with pytest.raises(TypeError):
            producer.send_batch(copy, "text")  # type: ignore[arg-type]
        with pytest.raises(UnknownPartition):
            producer.send_batch(copy._replace(partition=7), first)
    with (
        SyncProducer(broker.bootstrap_servers, max_request_size=len(first) - 1) as producer,
        pytest.raises(MessageTooLarge, match=r"max\.request\.size"),
    ):
        producer.send_batch(copy, first)
    assert read(broker, copy.topic, "read_uncommitted") == []
