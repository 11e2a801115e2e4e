"""A member of a group, by one of three clients: prints what it is given and what it reads.

    python -m tests.kit.clients.group_member CLIENT SERVERS GROUP TOPIC [INSTANCE_ID]

    record 2 41 value       partition, offset, value; its offset is committed afterwards

Ends at SIGTERM, having left the group; may be killed. INSTANCE_ID makes it a static member.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from typing import Any

from tests.kit.secured.suite import IS_SECURED

SESSION_MS, HEARTBEAT_MS = 6_000, 300
STATIC_SESSION_MS = 30_000  # in which another process takes the place of one that was killed


def session_ms(instance_id: str | None) -> int:
    return SESSION_MS if instance_id is None else STATIC_SESSION_MS


class Stopping:
    """Whether somebody has asked for the end."""

    def __init__(self) -> None:
        self.is_asked = False
        signal.signal(signal.SIGTERM, self._ask)

    def _ask(self, *_: Any) -> None:
        self.is_asked = True


def tell(partition: int, offset: int, value: bytes) -> None:
    print("record", partition, offset, value.decode(), flush=True)


def confluent(servers: str, group: str, topic: str, instance_id: str | None) -> None:
    from confluent_kafka import Consumer

    stopping = Stopping()
    config: dict[str, Any] = {
        "bootstrap.servers": servers,
        "group.id": group,
        "client.id": "confluent",
        "enable.auto.commit": False,
        "auto.offset.reset": "earliest",
        "session.timeout.ms": session_ms(instance_id),
        "heartbeat.interval.ms": HEARTBEAT_MS,
        "partition.assignment.strategy": "roundrobin,range",
        "log_level": 0,
    }
    if instance_id is not None:
        config["group.instance.id"] = instance_id
    consumer = Consumer(config)
    consumer.subscribe([topic])
    while not stopping.is_asked:
        message = consumer.poll(0.1)
        if message is not None and message.error() is None:
            partition, offset, value = message.partition(), message.offset(), message.value()
            assert partition is not None and offset is not None and value is not None
            tell(partition, offset, value)
            consumer.commit(message=message, asynchronous=True)
    consumer.close()


def kafka_python(servers: str, group: str, topic: str, instance_id: str | None) -> None:
    from kafka import KafkaConsumer
    from kafka.coordinator.assignors.range import RangePartitionAssignor
    from kafka.errors import KafkaError

    stopping = Stopping()
    consumer = KafkaConsumer(
        topic,
        bootstrap_servers=servers,
        group_id=group,
        client_id="kafka-python",
        group_instance_id=instance_id,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        session_timeout_ms=session_ms(instance_id),
        heartbeat_interval_ms=HEARTBEAT_MS,
        partition_assignment_strategy=[RangePartitionAssignor],
    )
    while not stopping.is_asked:
        found = consumer.poll(timeout_ms=100)
        for records in found.values():
            for one in records:
                tell(one.partition, one.offset, one.value)
        if found:  # of all partitions, so not before the records of each are printed
            try:
                consumer.commit()
            except KafkaError as error:
                print("commit failed:", error, file=sys.stderr, flush=True)
    consumer.close(autocommit=False)


def aiokafka(servers: str, group: str, topic: str, instance_id: str | None) -> None:
    asyncio.run(_aiokafka(servers, group, topic, instance_id))


async def _aiokafka(servers: str, group: str, topic: str, instance_id: str | None) -> None:
    from aiokafka import AIOKafkaConsumer
    from aiokafka.coordinator.assignors.range import RangePartitionAssignor
    from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
    from aiokafka.errors import KafkaError

    stopping = Stopping()
    consumer = AIOKafkaConsumer(
        topic,
        bootstrap_servers=servers,
        group_id=group,
        client_id="aiokafka",
        group_instance_id=instance_id,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        session_timeout_ms=session_ms(instance_id),
        heartbeat_interval_ms=HEARTBEAT_MS,
        partition_assignment_strategy=(RangePartitionAssignor, RoundRobinPartitionAssignor),
    )
    await consumer.start()
    try:
        while not stopping.is_asked:
            found = await consumer.getmany(timeout_ms=100)
            for records in found.values():
                for one in records:
                    tell(one.partition, one.offset, one.value)
            if found:
                try:
                    await consumer.commit()
                except KafkaError as error:
                    print("commit failed:", error, file=sys.stderr, flush=True)
    finally:
        await consumer.stop()


CLIENTS = {"confluent": confluent, "kafka-python": kafka_python, "aiokafka": aiokafka}

if __name__ == "__main__":
    if IS_SECURED:
        from tests.kit.secured import defaults

        defaults.install()
    client, servers, group, topic, *rest = sys.argv[1:]
    CLIENTS[client](servers, group, topic, rest[0] if rest else None)
