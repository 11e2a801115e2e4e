"""A test of code that uses aiokafka. With pytest-asyncio or anyio the test itself may be `async`.

pip install '.[test]' aiokafka
pytest examples/testing_aiokafka.py
"""

from __future__ import annotations

import asyncio

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

from barnabas.testing import Broker, Topic


def test_a_group_reads_what_was_produced(barnabas_broker: Broker, barnabas_topic: Topic) -> None:
    asyncio.run(exchange(barnabas_broker.bootstrap_servers, barnabas_topic.name))
    assert barnabas_topic.values() == [b"one"]
    assert barnabas_broker.group("billing").lag() == 0


async def exchange(servers: str, topic: str) -> None:
    async with AIOKafkaProducer(bootstrap_servers=servers) as producer:
        await producer.send_and_wait(topic, b"one", key=b"anna")
    async with AIOKafkaConsumer(
        topic, bootstrap_servers=servers, group_id="billing", auto_offset_reset="earliest"
    ) as consumer:
        record = await asyncio.wait_for(consumer.getone(), 10)
        assert (record.key, record.value) == (b"anna", b"one")
        await consumer.commit()
