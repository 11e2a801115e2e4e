"""aiokafka: asyncio, and the oldest protocol versions that a living client speaks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import BrokerResponseError

from tests.kit.clients.clients import (
    EARLIEST,
    LATEST,
    PROMISES,
    TIMEOUT_SECONDS,
    ClusterSeen,
    ConfigSeen,
    PartitionSeen,
    Promise,
    Refused,
    Resource,
    Seen,
    Sent,
)

Answer = TypeVar("Answer")

name = "aiokafka"
promises = PROMISES


def produce(servers: str, topic: str, records: list[Sent], *, codec: str, promise: Promise) -> None:
    sending = _produce(servers, topic, records, codec, promise)
    asyncio.run(asyncio.wait_for(sending, TIMEOUT_SECONDS))


def consume(servers: str, topic: str, partitions: int, count: int) -> list[Seen]:
    return asyncio.run(_consume(servers, topic, partitions, count))


async def _produce(
    servers: str, topic: str, records: list[Sent], codec: str, promise: Promise
) -> None:
    producer = AIOKafkaProducer(
        bootstrap_servers=servers,
        compression_type=None if codec == "none" else codec,
        acks="all" if promise.acks == -1 else promise.acks,
        enable_idempotence=promise.is_idempotent,
        linger_ms=20,
    )
    await producer.start()
    try:
        futures = [
            await producer.send(topic, value, key, partition, timestamp_ms, list(headers))
            for partition, key, value, headers, timestamp_ms in records
        ]
        for future in futures:
            await future
    finally:
        await producer.stop()


async def _consume(servers: str, topic: str, partitions: int, count: int) -> list[Seen]:
    async with _consumer(servers) as consumer:
        assigned = [TopicPartition(topic, number) for number in range(partitions)]
        consumer.assign(assigned)
        await consumer.seek_to_beginning(*assigned)
        seen: list[Seen] = []
        loop = asyncio.get_running_loop()
        ends_at = loop.time() + TIMEOUT_SECONDS
        while len(seen) < count and loop.time() < ends_at:
            for records in (await consumer.getmany(timeout_ms=200)).values():
                seen += [_seen(one) for one in records]
        return sorted(seen, key=lambda record: record.partition)


def list_topics(servers: str) -> set[str]:
    return set(_administer(servers, lambda admin: admin.list_topics()))


def describe_topic(servers: str, topic: str) -> list[PartitionSeen]:
    [described] = _administer(servers, lambda admin: admin.describe_topics([topic]))
    assert described["error_code"] == 0
    return sorted(
        PartitionSeen(one["partition"], one["leader"], tuple(one["replicas"]), tuple(one["isr"]))
        for one in described["partitions"]
    )


def create_topic(
    servers: str,
    topic: str,
    partitions: int,
    configs: dict[str, str],
    *,
    validate_only: bool = False,
) -> None:
    new = [NewTopic(topic, partitions, 1, topic_configs=configs)]
    answer = _administer(
        servers, lambda admin: admin.create_topics(new, validate_only=validate_only)
    )
    _check(answer.topic_errors[0][1])


def create_partitions(servers: str, topic: str, total: int) -> None:
    wanted = {topic: NewPartitions(total)}
    answer = _administer(servers, lambda admin: admin.create_partitions(wanted))
    _check(answer.topic_errors[0][1])


def delete_topic(servers: str, topic: str) -> None:
    answer = _administer(servers, lambda admin: admin.delete_topics([topic]))
    _check(answer.topic_error_codes[0][1])


def offset(servers: str, topic: str, spec: int) -> int | None:
    partition = TopicPartition(topic, 0)

    async def ask() -> int | None:
        async with _consumer(servers) as consumer:
            if spec == EARLIEST:
                return (await consumer.beginning_offsets([partition]))[partition]
            if spec == LATEST:
                return (await consumer.end_offsets([partition]))[partition]
            found = (await consumer.offsets_for_times({partition: spec}))[partition]
            return None if found is None else found.offset

    return asyncio.run(ask())


def describe_configs(servers: str, resource: Resource) -> dict[str, ConfigSeen]:
    asked = [_resource(resource)]
    [answer] = _administer(servers, lambda admin: admin.describe_configs(asked))
    [(error_code, _, _, _, configs)] = answer.resources
    _check(error_code)
    return {key: ConfigSeen(value, source) for key, value, _read_only, source, *_ in configs}


def alter_configs(servers: str, resource: Resource, configs: dict[str, str]) -> None:
    asked = [_resource(resource, configs)]
    [answer] = _administer(servers, lambda admin: admin.alter_configs(asked))
    _check(answer.resources[0][0])


def describe_cluster(servers: str) -> ClusterSeen:
    described = _administer(servers, lambda admin: admin.describe_cluster())
    return ClusterSeen(
        described["controller_id"], tuple(one["node_id"] for one in described["brokers"])
    )


def _resource(resource: Resource, configs: dict[str, str] | None = None) -> ConfigResource:
    kind, named = resource
    return ConfigResource(ConfigResourceType[kind.upper()], named, configs)


def _seen(one: Any) -> Seen:
    place = one.partition, one.offset
    return Seen(*place, one.key, one.value, tuple(one.headers), one.timestamp)


def _administer(servers: str, ask: Callable[[AIOKafkaAdminClient], Awaitable[Answer]]) -> Answer:
    async def run() -> Answer:
        admin = AIOKafkaAdminClient(bootstrap_servers=servers)
        await admin.start()
        try:
            return await ask(admin)
        except BrokerResponseError as error:
            raise Refused(error.errno) from error
        finally:
            await admin.close()

    return asyncio.run(asyncio.wait_for(run(), TIMEOUT_SECONDS))


def _check(error_code: int) -> None:
    """Most of aiokafka's admin hands over what the broker answered, without judging it."""
    if error_code:
        raise Refused(error_code)


@asynccontextmanager
async def _consumer(servers: str) -> AsyncIterator[AIOKafkaConsumer]:
    consumer = AIOKafkaConsumer(
        bootstrap_servers=servers, enable_auto_commit=False, fetch_max_wait_ms=100
    )
    await consumer.start()
    try:
        yield consumer
    finally:
        await consumer.stop()
