"""kafka-python: the newest protocol versions of all, and idempotent unless configured otherwise."""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType, ConfigSourceType
from kafka.errors import BrokerResponseError

from tests.kit.clients.clients import (
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

name = "kafka-python"
promises = PROMISES


def produce(servers: str, topic: str, records: list[Sent], *, codec: str, promise: Promise) -> None:
    with closing(
        KafkaProducer(
            bootstrap_servers=servers,
            compression_type=None if codec == "none" else codec,
            acks=promise.acks,
            enable_idempotence=promise.is_idempotent,
            linger_ms=20,
        )
    ) as producer:
        futures = [
            producer.send(topic, value, key, list(headers), partition, timestamp_ms)
            for partition, key, value, headers, timestamp_ms in records
        ]
        producer.flush(TIMEOUT_SECONDS)
        try:
            for future in futures:
                future.get(TIMEOUT_SECONDS)
        except BrokerResponseError as error:
            raise Refused(error.errno) from error


def consume(servers: str, topic: str, partitions: int, count: int) -> list[Seen]:
    with closing(_consumer(servers)) as consumer:
        assigned = [TopicPartition(topic, number) for number in range(partitions)]
        consumer.assign(assigned)
        consumer.seek_to_beginning(*assigned)
        seen: list[Seen] = []
        ends_at = time.monotonic() + TIMEOUT_SECONDS
        while len(seen) < count and time.monotonic() < ends_at:
            for records in consumer.poll(timeout_ms=200).values():
                seen += [_seen(one) for one in records]
        return sorted(seen, key=lambda record: record.partition)


def list_topics(servers: str) -> set[str]:
    with _admin(servers) as admin:
        return set(admin.list_topics())


def describe_topic(servers: str, topic: str) -> list[PartitionSeen]:
    with _admin(servers) as admin:
        [described] = admin.describe_topics([topic])
    assert described["error_code"] == 0
    return sorted(
        PartitionSeen(
            one["partition_index"],
            one["leader_id"],
            tuple(one["replica_nodes"]),
            tuple(one["isr_nodes"]),
        )
        for one in described["partitions"]
    )


def topic_id(servers: str, topic: str) -> str:
    with _admin(servers) as admin:
        [described] = admin.describe_topics([topic])
    return str(described["topic_id"])


def create_topic(
    servers: str,
    topic: str,
    partitions: int,
    configs: dict[str, str],
    *,
    validate_only: bool = False,
) -> None:
    asked = {"num_partitions": partitions, "replication_factor": 1, "configs": configs}
    with _admin(servers) as admin:
        admin.create_topics({topic: asked}, validate_only=validate_only)


def create_partitions(servers: str, topic: str, total: int) -> None:
    with _admin(servers) as admin:
        admin.create_partitions({topic: total})


def delete_topic(servers: str, topic: str) -> None:
    with _admin(servers) as admin:
        admin.delete_topics([topic])


def delete_topic_by_id(servers: str, topic_id: str) -> None:
    with _admin(servers) as admin:
        admin.delete_topics([uuid.UUID(topic_id)])


def offset(servers: str, topic: str, spec: int) -> int | None:
    partition = TopicPartition(topic, 0)
    with _admin(servers) as admin:
        found = admin.list_partition_offsets({partition: spec})[partition].offset
    return found if found >= 0 else None


def describe_configs(servers: str, resource: Resource) -> dict[str, ConfigSeen]:
    kind, named = resource
    with _admin(servers) as admin:
        described = admin.describe_configs([_resource(resource)], config_filter="all")
    return {
        key: ConfigSeen(entry["value"], ConfigSourceType[entry["config_source"]].value)
        for key, entry in described[kind][named].items()
    }


def alter_configs(servers: str, resource: Resource, configs: dict[str, str]) -> None:
    """A client that fills in what is not named, so that it keeps its value."""
    with _admin(servers) as admin:
        answer = admin.alter_configs([_resource(resource, configs)], incremental=False)
    _check(answer, resource)


def change_configs(servers: str, resource: Resource, changes: list[Change]) -> None:
    steps = {key: (how, value) for how, key, value in changes}
    with _admin(servers) as admin:
        answer = admin.alter_configs([_resource(resource, steps)], incremental=True)
    _check(answer, resource)


def log_sizes(servers: str) -> dict[tuple[str, int], int]:
    with _admin(servers) as admin:
        answers = admin.describe_log_dirs()
    directories = [directory for answer in answers for directory in answer["log_dirs"]]
    assert {directory["error_code"] for directory in directories} == {0}
    return {
        (topic["name"], partition["partition_index"]): partition["partition_size"]
        for directory in directories
        for topic in directory["topics"]
        for partition in topic["partitions"]
    }


def describe_cluster(servers: str) -> ClusterSeen:
    with _admin(servers) as admin:
        described = admin.describe_cluster()
    return ClusterSeen(
        described["controller_id"], tuple(one["broker_id"] for one in described["brokers"])
    )


def _resource(resource: Resource, configs: dict[str, Any] | None = None) -> ConfigResource:
    kind, named = resource
    return ConfigResource(ConfigResourceType[kind.upper()], named, configs)


def _check(answer: dict[str, dict[str, str]], resource: Resource) -> None:
    """Here the client hands over its own text of the error: `[Error 40] InvalidConfig...`."""
    kind, named = resource
    result = answer[kind][named]
    if result != "OK":
        refused = re.match(r"\[Error (-?\d+)\]", result)
        assert refused, result
        raise Refused(int(refused[1]))


def _seen(one: Any) -> Seen:
    place = one.partition, one.offset
    return Seen(*place, one.key, one.value, tuple(one.headers), one.timestamp)


def _consumer(servers: str) -> KafkaConsumer:
    return KafkaConsumer(
        bootstrap_servers=servers, group_id=None, enable_auto_commit=False, fetch_max_wait_ms=100
    )


@contextmanager
def _admin(servers: str) -> Iterator[KafkaAdminClient]:
    with closing(KafkaAdminClient(bootstrap_servers=servers)) as admin:
        try:
            yield admin
        except BrokerResponseError as error:
            raise Refused(error.errno) from error
