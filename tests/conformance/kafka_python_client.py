"""kafka-python: the newest protocol versions of all, and idempotent unless it is told otherwise."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType
from kafka.errors import BrokerResponseError

from tests.conformance.clients import TIMEOUT_SECONDS, PartitionSeen, Refused, Seen, Sent

name = "kafka-python"


def produce(servers: str, topic: str, records: list[Sent], *, codec: str, acks: int) -> None:
    with closing(
        KafkaProducer(
            bootstrap_servers=servers,
            compression_type=None if codec == "none" else codec,
            acks=acks,
            enable_idempotence=acks == -1,
            linger_ms=20,
        )
    ) as producer:
        futures = [
            producer.send(topic, value, key, list(headers), partition)
            for partition, key, value, headers in records
        ]
        producer.flush(TIMEOUT_SECONDS)
        for future in futures:
            future.get(TIMEOUT_SECONDS)


def consume(servers: str, topic: str, partitions: int, count: int) -> list[Seen]:
    with closing(_consumer(servers)) as consumer:
        assigned = [TopicPartition(topic, number) for number in range(partitions)]
        consumer.assign(assigned)
        consumer.seek_to_beginning(*assigned)
        seen: list[Seen] = []
        ends_at = time.monotonic() + TIMEOUT_SECONDS
        while len(seen) < count and time.monotonic() < ends_at:
            for records in consumer.poll(timeout_ms=200).values():
                seen += [
                    Seen(one.partition, one.offset, one.key, one.value, tuple(one.headers))
                    for one in records
                ]
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


def create_topic(servers: str, topic: str, partitions: int, configs: dict[str, str]) -> None:
    asked = {"num_partitions": partitions, "replication_factor": 1, "configs": configs}
    with _admin(servers) as admin:
        admin.create_topics({topic: asked})


def topic_config(servers: str, topic: str, key: str) -> str:
    with _admin(servers) as admin:
        resource = ConfigResource(ConfigResourceType.TOPIC, topic)
        described = admin.describe_configs([resource], config_filter="all")
    return str(described["topic"][topic][key]["value"])


def delete_topic(servers: str, topic: str) -> None:
    with _admin(servers) as admin:
        admin.delete_topics([topic])


def offset_at(servers: str, topic: str, timestamp_ms: int) -> int | None:
    partition = TopicPartition(topic, 0)
    with closing(_consumer(servers)) as consumer:
        found = consumer.offsets_for_times({partition: timestamp_ms})[partition]
    return None if found is None else found.offset


def bounds(servers: str, topic: str) -> tuple[int, int]:
    partition = TopicPartition(topic, 0)
    with closing(_consumer(servers)) as consumer:
        low = consumer.beginning_offsets([partition])[partition]
        return low, consumer.end_offsets([partition])[partition]


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
