"""aiokafka: asyncio, and the oldest protocol versions that a living client speaks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType

from tests.conformance.clients import TIMEOUT_SECONDS, PartitionSeen, Refused, Seen, Sent

Answer = TypeVar("Answer")

name = "aiokafka"


def produce(servers: str, topic: str, records: list[Sent], *, codec: str, acks: int) -> None:
    asyncio.run(asyncio.wait_for(_produce(servers, topic, records, codec, acks), TIMEOUT_SECONDS))


def consume(servers: str, topic: str, partitions: int, count: int) -> list[Seen]:
    return asyncio.run(_consume(servers, topic, partitions, count))


async def _produce(servers: str, topic: str, records: list[Sent], codec: str, acks: int) -> None:
    producer = AIOKafkaProducer(
        bootstrap_servers=servers,
        compression_type=None if codec == "none" else codec,
        acks="all" if acks == -1 else acks,
        enable_idempotence=acks == -1,
        linger_ms=20,
    )
    await producer.start()
    try:
        futures = [
            await producer.send(topic, value, key, partition, headers=list(headers))
            for partition, key, value, headers in records
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
                seen += [
                    Seen(one.partition, one.offset, one.key, one.value, tuple(one.headers))
                    for one in records
                ]
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


def create_topic(servers: str, topic: str, partitions: int, configs: dict[str, str]) -> None:
    new = NewTopic(topic, partitions, 1, topic_configs=configs)
    answer = _administer(servers, lambda admin: admin.create_topics([new]))
    _check(answer.topic_errors[0][1])


def topic_config(servers: str, topic: str, key: str) -> str:
    resource = ConfigResource(ConfigResourceType.TOPIC, topic)
    [answer] = _administer(servers, lambda admin: admin.describe_configs([resource]))
    error_code, _, _, _, configs = answer.resources[0]
    _check(error_code)
    return str(next(value for name, value, *_ in configs if name == key))


def delete_topic(servers: str, topic: str) -> None:
    answer = _administer(servers, lambda admin: admin.delete_topics([topic]))
    _check(answer.topic_error_codes[0][1])


def offset_at(servers: str, topic: str, timestamp_ms: int) -> int | None:
    partition = TopicPartition(topic, 0)

    async def ask() -> int | None:
        async with _consumer(servers) as consumer:
            found = (await consumer.offsets_for_times({partition: timestamp_ms}))[partition]
            return None if found is None else found.offset

    return asyncio.run(ask())


def bounds(servers: str, topic: str) -> tuple[int, int]:
    partition = TopicPartition(topic, 0)

    async def ask() -> tuple[int, int]:
        async with _consumer(servers) as consumer:
            low = (await consumer.beginning_offsets([partition]))[partition]
            return low, (await consumer.end_offsets([partition]))[partition]

    return asyncio.run(ask())


def _administer(servers: str, ask: Callable[[AIOKafkaAdminClient], Awaitable[Answer]]) -> Answer:
    async def run() -> Answer:
        admin = AIOKafkaAdminClient(bootstrap_servers=servers)
        await admin.start()
        try:
            return await ask(admin)
        finally:
            await admin.close()

    return asyncio.run(asyncio.wait_for(run(), TIMEOUT_SECONDS))


def _check(error_code: int) -> None:
    """aiokafka's admin hands over what the broker answered and leaves the judgement to us."""
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
