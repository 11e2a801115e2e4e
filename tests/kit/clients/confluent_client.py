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
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    TopicMetadata,
)

from tests.kit.clients.clients import (
    EARLIEST,
    HOW,
    LATEST,
    MAX_TIMESTAMP,
    PROMISES,
    TIMEOUT_SECONDS,
    Change,
    ClusterSeen,
    ConfigSeen,
    PartitionSeen,
    Promise,
    Refused,
    Resource,
    Seen,
    Sent,
)
from tests.kit.raw_client import once_not

name = "confluent-kafka"
promises = PROMISES

ACKNOWLEDGED = Promise(-1)


def produce(
    servers: str,
    topic: str,
    records: list[Sent],
    *,
    codec: str = "none",
    promise: Promise = ACKNOWLEDGED,
) -> None:
    producer = Producer(
        {
            "bootstrap.servers": servers,
            "compression.type": codec,
            "acks": promise.acks,
            "enable.idempotence": promise.is_idempotent,
            "linger.ms": 20,
            "message.timeout.ms": int(TIMEOUT_SECONDS * 1000),
        }
    )
    failed: list[KafkaError] = []

    def delivered(error: KafkaError | None, _: Message) -> None:
        if error is not None:
            failed.append(error)

    for partition, key, value, headers, timestamp_ms in records:
        # 0 stands for the time of day.
        timed: dict[str, Any] = {"timestamp": timestamp_ms or 0, "headers": list(headers)}
        producer.produce(topic, value, key, partition, on_delivery=delivered, **timed)
    assert producer.flush(TIMEOUT_SECONDS) == 0
    if failed:
        raise Refused(failed[0].code())


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
    """Asks again, as every client does, while the broker that answers knows of no leader yet."""

    def ask() -> TopicMetadata:
        return _admin(servers).list_topics(topic, timeout=TIMEOUT_SECONDS).topics[topic]

    described = once_not(
        KafkaError.LEADER_NOT_AVAILABLE, ask, lambda seen: seen.error.code() if seen.error else 0
    )
    assert described.error is None, described.error
    return [
        PartitionSeen(one.id, one.leader, tuple(one.replicas), tuple(one.isrs))
        for _, one in sorted(described.partitions.items())
    ]


def create_topic(
    servers: str,
    topic: str,
    partitions: int,
    configs: dict[str, str],
    *,
    validate_only: bool = False,
    replicas: int = 1,
) -> None:
    new = NewTopic(topic, num_partitions=partitions, replication_factor=replicas, config=configs)
    admin = _admin(servers)
    _answer(admin.create_topics([new], validate_only=validate_only)[topic])


def create_partitions(servers: str, topic: str, total: int) -> None:
    admin = _admin(servers)
    _answer(admin.create_partitions([NewPartitions(topic, total)])[topic])


def delete_topic(servers: str, topic: str) -> None:
    admin = _admin(servers)
    _answer(admin.delete_topics([topic])[topic])


def offset(servers: str, topic: str, spec: int) -> int | None:
    named: dict[int, Any] = {
        LATEST: OffsetSpec.latest,
        EARLIEST: OffsetSpec.earliest,
        MAX_TIMESTAMP: OffsetSpec.max_timestamp,
    }
    asked: OffsetSpec = named[spec]() if spec in named else OffsetSpec.for_timestamp(spec)
    partition = TopicPartition(topic, 0)
    admin = _admin(servers)
    found = _answer(admin.list_offsets({partition: asked})[partition]).offset
    assert isinstance(found, int)
    return found if found >= 0 else None


def describe_configs(servers: str, resource: Resource) -> dict[str, ConfigSeen]:
    asked = _resource(resource)
    admin = _admin(servers)
    described = _answer(admin.describe_configs([asked])[asked])
    return {key: ConfigSeen(entry.value, entry.source) for key, entry in described.items()}


def alter_configs(servers: str, resource: Resource, configs: dict[str, str]) -> None:
    asked = _resource(resource, set_config=configs)
    admin = _admin(servers)
    _answer(admin.alter_configs([asked])[asked])


def change_configs(servers: str, resource: Resource, changes: list[Change]) -> None:
    steps = [
        ConfigEntry(key, value, incremental_operation=AlterConfigOpType(HOW[how]))
        for how, key, value in changes
    ]
    asked = _resource(resource, incremental_configs=steps)
    admin = _admin(servers)
    _answer(admin.incremental_alter_configs([asked])[asked])


def describe_cluster(servers: str) -> ClusterSeen:
    admin = _admin(servers)
    described = _answer(admin.describe_cluster())
    return ClusterSeen(described.controller.id, tuple(node.id for node in described.nodes))


def _resource(resource: Resource, **changes: Any) -> ConfigResource:
    kind, named = resource
    return ConfigResource(ConfigResource.Type[kind.upper()], named, **changes)


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


def place_of(message: Message) -> tuple[int, int]:
    """Partition and offset of a record that a consumer got."""
    partition, offset = message.partition(), message.offset()
    assert partition is not None and offset is not None, message
    return partition, offset


def value_of(message: Message) -> bytes:
    """Of a record that was sent with one."""
    value = message.value()
    assert value is not None, message
    return value


def _seen(message: Message) -> Seen:
    headers: Any = message.headers() or ()  # typed as bytes | str, which it never is here
    _, timestamp_ms = message.timestamp()
    return Seen(*place_of(message), message.key(), message.value(), tuple(headers), timestamp_ms)
