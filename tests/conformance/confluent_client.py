"""confluent-kafka: librdkafka, the client with the most users outside of Java."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic

from tests.conformance.clients import TIMEOUT_SECONDS, PartitionSeen, Refused, Seen, Sent

name = "confluent-kafka"


def produce(servers: str, topic: str, records: list[Sent], *, codec: str, acks: int) -> None:
    producer = Producer(
        {
            "bootstrap.servers": servers,
            "compression.type": codec,
            "acks": acks,
            "linger.ms": 20,
            "message.timeout.ms": int(TIMEOUT_SECONDS * 1000),
        }
    )
    failed: list[KafkaError] = []

    def delivered(error: KafkaError | None, _: Message) -> None:
        if error is not None:
            failed.append(error)

    for partition, key, value, headers in records:
        producer.produce(topic, value, key, partition, headers=list(headers), on_delivery=delivered)
    assert producer.flush(TIMEOUT_SECONDS) == 0
    assert failed == []


def consume(servers: str, topic: str, partitions: int, count: int) -> list[Seen]:
    with _consumer(servers) as consumer:
        consumer.assign(
            [TopicPartition(topic, number, OFFSET_BEGINNING) for number in range(partitions)]
        )
        seen: list[Seen] = []
        ends_at = time.monotonic() + TIMEOUT_SECONDS
        while len(seen) < count and time.monotonic() < ends_at:
            for message in consumer.consume(min(count, 10_000), timeout=0.2):
                assert message.error() is None, message.error()
                seen.append(_seen(message))
        return sorted(seen, key=lambda record: record.partition)


def list_topics(servers: str) -> set[str]:
    return set(_admin(servers).list_topics(timeout=TIMEOUT_SECONDS).topics)


def describe_topic(servers: str, topic: str) -> list[PartitionSeen]:
    described = _admin(servers).list_topics(topic, timeout=TIMEOUT_SECONDS).topics[topic]
    assert described.error is None, described.error
    return [
        PartitionSeen(one.id, one.leader, tuple(one.replicas), tuple(one.isrs))
        for _, one in sorted(described.partitions.items())
    ]


def create_topic(servers: str, topic: str, partitions: int, configs: dict[str, str]) -> None:
    new = NewTopic(topic, num_partitions=partitions, replication_factor=1, config=configs)
    admin = _admin(servers)
    _answer(admin.create_topics([new])[topic])


def topic_config(servers: str, topic: str, key: str) -> str:
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
    admin = _admin(servers)
    value = _answer(admin.describe_configs([resource])[resource])[key].value
    assert isinstance(value, str)
    return value


def delete_topic(servers: str, topic: str) -> None:
    admin = _admin(servers)
    _answer(admin.delete_topics([topic])[topic])


def offset_at(servers: str, topic: str, timestamp_ms: int) -> int | None:
    with _consumer(servers) as consumer:
        asked = [TopicPartition(topic, 0, timestamp_ms)]
        [found] = consumer.offsets_for_times(asked, timeout=TIMEOUT_SECONDS)
        # librdkafka says "the end" where there is nothing of that time or later.
        return found.offset if found.offset >= 0 else None


def bounds(servers: str, topic: str) -> tuple[int, int]:
    with _consumer(servers) as consumer:
        low, high = consumer.get_watermark_offsets(TopicPartition(topic, 0), TIMEOUT_SECONDS)
        return low, high


def _admin(servers: str) -> AdminClient:
    """Must be kept until its futures are done: they fail when it is collected."""
    return AdminClient({"bootstrap.servers": servers})


def _answer(future: Future[Any]) -> Any:
    try:
        return future.result(TIMEOUT_SECONDS)
    except KafkaException as error:
        raise Refused(error.args[0].code()) from error


@contextmanager
def _consumer(servers: str) -> Iterator[Consumer]:
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "is required and never joined",
            "enable.auto.commit": False,
        }
    )
    try:
        yield consumer
    finally:
        consumer.close()


def _seen(message: Message) -> Seen:
    place = message.partition(), message.offset()
    headers: Any = message.headers() or ()  # typed as bytes | str, which it never is here
    return Seen(*place, message.key(), message.value(), tuple(headers))
