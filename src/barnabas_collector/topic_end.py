"""Reads a topic up to its current end."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Final

from barnabas.client.consumer.consumer import Consumer
from barnabas.client.consumer.fetched import ConsumerRecord
from barnabas.types import TopicPartition

_POLL_MS: Final = 1_000


async def assign_all(consumer: Consumer, topic: str) -> Mapping[TopicPartition, int]:
    """Assign all partitions of a topic and return the end offset of each."""
    places = [TopicPartition(topic, each) for each in await consumer.partitions_for(topic)]
    consumer.assign(places)
    return await consumer.end_offsets(places)


async def records_until(
    consumer: Consumer, ends: Mapping[TopicPartition, int]
) -> AsyncIterator[list[ConsumerRecord]]:
    """Yield records until the consumer has reached these end offsets. The last records may be after
    these offsets.
    """
    while any([await consumer.position(place) < end for place, end in ends.items()]):
        if records := await consumer.poll(_POLL_MS):
            yield records
