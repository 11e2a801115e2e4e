"""All records of a topic, read by our consumer."""

from __future__ import annotations

import asyncio

from barnabas.client import Consumer, ConsumerRecord
from barnabas.types import TopicPartition
from tests.kit.client_transactions import PATIENCE_S


async def topic_records(
    servers: str, topic: str, isolation_level: str = "read_uncommitted"
) -> list[ConsumerRecord]:
    """Those in front of the log's ends, or of the last stable offsets."""
    async with Consumer(
        servers, auto_offset_reset="earliest", isolation_level=isolation_level
    ) as consumer:
        names = [TopicPartition(topic, each) for each in await consumer.partitions_for(topic)]
        consumer.assign(names)
        ends = await consumer.end_offsets(names)
        records: list[ConsumerRecord] = []
        async with asyncio.timeout(PATIENCE_S):
            while [await consumer.position(each) for each in names] < list(ends.values()):
                records += await consumer.poll(100)
        return records
