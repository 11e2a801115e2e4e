"""Fetches committed records from many partitions at once, as chunks of batches."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import NamedTuple

from barnabas.client.channel import BrokerAddress
from barnabas.client.cluster import Cluster
from barnabas.client.consumer.fetched import AbortedTransaction, Chunk
from barnabas.client.errors import broker_error
from barnabas.client.offsets import EARLIEST, LATEST, READ_COMMITTED, OffsetFinder
from barnabas.errors import CorruptData, LeaderNotAvailable
from barnabas.protocol.api import FETCH
from barnabas.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from barnabas.types import TopicPartition

_LAST_WITH_NAMES = 12  # later versions identify topics by id (KIP-516)
_PARTITION_BYTES = 4 * 1024 * 1024
_TOTAL_BYTES = 24 * 1024 * 1024
_TIMEOUT_MS = 60_000
_WAIT_MS = 500

Positions = Mapping[TopicPartition, int]


class Ends(NamedTuple):
    """Contains the offsets at which the committed records of a partition begin and end."""

    start: int
    end: int


class Fetches:
    """Reads from the leaders of a cluster with `read_committed`."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self._finder = OffsetFinder(cluster, READ_COMMITTED)

    async def ends(self, names: list[TopicPartition]) -> dict[TopicPartition, Ends]:
        """Return where these partitions begin and end. Raises KafkaError or Unreachable."""
        starts = await self._finder.find(dict.fromkeys(names, EARLIEST), _TIMEOUT_MS)
        ends = await self._finder.find(dict.fromkeys(names, LATEST), _TIMEOUT_MS)
        return {name: Ends(starts[name].offset, ends[name].offset) for name in names}

    async def fetch(self, positions: Positions, wait_ms: int = 0) -> list[Chunk]:
        """Return what the leaders have from these positions on, one chunk a partition at most.

        Raises KafkaError, Unreachable or CorruptData. OffsetOutOfRange means that a partition
        begins later or ends earlier.
        """
        by_leader: dict[BrokerAddress, dict[TopicPartition, int]] = {}
        for name, offset in positions.items():
            by_leader.setdefault(await leader_of(self.cluster, name), {})[name] = offset
        found = await asyncio.gather(
            *(self._ask(node, wanted, wait_ms) for node, wanted in by_leader.items())
        )
        return [chunk for each in found for chunk in each]

    async def records(self, name: TopicPartition, start: int, end: int) -> AsyncIterator[Chunk]:
        """Yield the chunks of one partition between two offsets. The last may reach further."""
        coming: asyncio.Task[list[Chunk]] | None = None
        try:
            while start < end:
                chunks = await (coming or self.fetch({name: start}, _WAIT_MS))
                coming = None
                for chunk in chunks:
                    start = chunk.next_offset
                    if start < end:
                        coming = asyncio.ensure_future(self.fetch({name: start}, _WAIT_MS))
                    yield chunk
        finally:
            if coming is not None:
                coming.cancel()
                await asyncio.gather(coming, return_exceptions=True)

    async def _ask(self, node: BrokerAddress, positions: Positions, wait_ms: int) -> list[Chunk]:
        topics: dict[str, list[FetchPartition]] = {}
        for name, offset in positions.items():
            wanted = FetchPartition(
                partition=name.partition,
                fetch_offset=offset,
                partition_max_bytes=_PARTITION_BYTES,
            )
            topics.setdefault(name.topic, []).append(wanted)
        request = FetchRequest(
            replica_id=-1,
            max_wait_ms=wait_ms,
            min_bytes=1,
            max_bytes=_TOTAL_BYTES,
            isolation_level=READ_COMMITTED,
            topics=[FetchTopic(topic=name, partitions=own) for name, own in topics.items()],
        )
        answer = await self.cluster.call(node, FETCH, request, FetchResponse, _LAST_WITH_NAMES)
        if answer.error_code:
            raise broker_error(answer.error_code, f"fetching from {node}")
        found = [
            _chunk(TopicPartition(topic.topic, data.partition_index), positions, data)
            for topic in answer.responses
            for data in topic.partitions
        ]
        return [chunk for chunk in found if chunk is not None]


async def leader_of(cluster: Cluster, name: TopicPartition) -> BrokerAddress:
    """Return the leader of a partition. Raises LeaderNotAvailable."""
    metadata = cluster.metadata
    node = metadata.view.leader(name)
    if node is None:
        await metadata.topic(name.topic, _TIMEOUT_MS, create=False)
        node = metadata.view.leader(name)
    if node is None:
        raise LeaderNotAvailable(f"{name} has no leader")
    return node


def _chunk(name: TopicPartition, positions: Positions, data: PartitionData) -> Chunk | None:
    offset = positions[name]
    if data.error_code:
        raise broker_error(data.error_code, f"fetching from offset {offset} of {name}")
    if not data.records:
        return None
    aborted = [
        AbortedTransaction(each.producer_id, each.first_offset)
        for each in data.aborted_transactions or ()
    ]
    assert isinstance(data.records, memoryview), "decoded records are a view"
    chunk = Chunk(name, offset, data.records, aborted, data.high_watermark)
    if not chunk.records:
        raise CorruptData(f"the batch at offset {offset} of {name} did not arrive whole")
    return chunk
