"""Topics for the tests of the data source: made, filled and taken away in one line each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from barnabas.client.admin.admin import NewTopic
from barnabas.client.producer.batch import ProducerRecord
from barnabas.client.sync.producer import SyncAdmin, SyncConsumer, SyncProducer
from barnabas.records.record import Record, iterate_records
from barnabas.testing.embedded.broker import Broker
from barnabas.types import TopicPartition

if TYPE_CHECKING:
    from barnabas.client.consumer.fetched import ConsumerRecord
    from barnabas.testing.embedded.broker import Broker

NOW_MS = 1_700_000_000_000


def create(
    broker: Broker, topic: str, partitions: int = 1, configs: Mapping[str, str] | None = None
) -> str:
    with SyncAdmin(broker.bootstrap_servers) as admin:
        admin.create_topics([NewTopic(topic, partitions, configs=configs or {})])
    return topic


def delete(broker: Broker, topic: str) -> None:
    with SyncAdmin(broker.bootstrap_servers) as admin:
        admin.delete_topics([topic])


def send(broker: Broker, topic: str, values: Iterable[bytes], partition: int = 0) -> None:
    """One record a value, a second apart from `NOW_MS` on in each call."""
    records = [
        ProducerRecord(topic, value, None, partition, NOW_MS + 1000 * step)
        for step, value in enumerate(values)
    ]
    send_records(broker, records)


def send_records(broker: Broker, records: Iterable[ProducerRecord]) -> None:
    with SyncProducer(broker.bootstrap_servers) as producer:
        deliveries = producer.send_many(records)
        producer.flush()
        for delivery in deliveries:
            delivery.result()


def numbered(start: int, end: int) -> list[bytes]:
    return [b"%d" % number for number in range(start, end)]


def records_of(broker: Broker, topic: str, partition: int = 0) -> list[Record]:
    """All records of a partition, read without the code under test."""
    name = TopicPartition(topic, partition)
    records: list[Record] = []
    with SyncConsumer(broker.bootstrap_servers, auto_offset_reset="earliest") as consumer:
        end = consumer.end_offsets([name])[name]
        consumer.assign([name])
        position = 0
        while position < end:
            fetched = consumer.fetch_batches(10_000)[name]
            records += iterate_records(fetched.records)
            position = fetched.next_offset
    return records


def read_all(broker: Broker, topic: str, count: int) -> list[ConsumerRecord]:
    """All records of a topic, which are `count`, in order of partition and offset."""
    with SyncConsumer(broker.bootstrap_servers, auto_offset_reset="earliest") as consumer:
        consumer.assign([TopicPartition(topic, n) for n in consumer.partitions_for(topic)])
        records: list[ConsumerRecord] = []
        for _ in range(100):
            if len(records) >= count:
                break
            records += consumer.poll(1_000)
        assert consumer.poll(50) == []
    return sorted(records, key=lambda record: (record.partition, record.offset))
