"""Compares a broker's replicas with those of their leaders, below the high watermark (MX-3).

Replicas are copied byte by byte, so each batch has the same checksum everywhere. Brokers compact
their replicas independently, so only the log end offset of a compacted topic is compared.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Iterable, Mapping
from struct import Struct
from typing import NamedTuple

from barnabas.cli.migrate.facts import ClusterFacts
from barnabas.cli.migrate.plan import Progress
from barnabas.cli.migrate.read import Connection
from barnabas.client.channel import BrokerAddress
from barnabas.client.errors import broker_error, check
from barnabas.client.offsets import EARLIEST, LATEST
from barnabas.errors import KafkaError, RequestTimedOut
from barnabas.protocol.api import FETCH
from barnabas.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from barnabas.records.batch import iterate_batches, verify_crc
from barnabas.records.crc32c import Buffer
from barnabas.types import TopicPartition

_VERSION = 12  # the last version with topic names
_ANY_REPLICA = -2
_PATIENCE_S, _PAUSE_S = 30.0, 0.1
_PIECE_BYTES = 1 << 20
_AT_ONCE = 16
_BATCH = Struct(">qII")


class Checked(NamedTuple):
    """How many replicas were compared, how many records of them, and what is wrong."""

    replicas: int
    compared: int  # of them, those whose records were compared
    offsets: int
    problems: tuple[str, ...]


async def check_replicas(
    connection: Connection,
    facts: ClusterFacts,
    progress: Progress,
    *,
    records: bool,
    patience_s: float = _PATIENCE_S,
) -> Checked:
    """Compare the replicas of the replaced broker with what they were, and with the leaders.

    A broker that has just started may take `patience_s` until it serves a replica.
    """
    broker_id = progress.broker_id
    leaders = {
        name: view.leader
        for name, view in facts.partitions()
        if broker_id in view.replicas and view.leader >= 0
    }
    starts = await connection.admin.list_offsets(dict.fromkeys(leaders, EARLIEST))
    # Of a partition that had no leader before, only the present end is known.
    unknown = [name for name in leaders if name not in progress.ends]
    latest = await connection.admin.list_offsets(dict.fromkeys(unknown, LATEST))
    ends = {**progress.ends, **{name: each.offset for name, each in latest.items()}}
    ranges = {
        name: (each.offset, ends[name]) for name, each in starts.items() if ends[name] > each.offset
    }
    # Each comparison mostly waits for two brokers, but a thousand at once would exceed timeouts.
    gate = asyncio.Semaphore(_AT_ONCE)

    async def compare(name: TopicPartition, start: int, end: int) -> tuple[int, str | None]:
        async with gate:
            nodes = [facts.brokers[each].node for each in (broker_id, leaders[name])]
            error = await _missing(connection, nodes[0], name, end, patience_s)
            if error is not None:
                return 0, f"{name} ended at {end} before, and broker {broker_id} says: {error}"
            if name in progress.tails:
                tail = await _digest(connection, nodes[0], name, end - 1, end)
                changed = f"{name} has another record than before at offset {end - 1}"
                return 0, None if tail == progress.tails[name] else changed
            if not records or leaders[name] == broker_id or facts.is_compacted(name.topic):
                return 0, None
            own_sum, leaders_sum = await asyncio.gather(
                *(_digest(connection, node, name, start, end) for node in nodes)
            )
            if own_sum == leaders_sum:
                return end - start, None
            text = f"{name} differs from the leader's replica in offsets {start} to {end - 1}"
            return end - start, text

    found = await asyncio.gather(
        *(compare(name, start, end) for name, (start, end) in sorted(ranges.items()))
    )
    return Checked(
        len(leaders),
        sum(offsets > 0 for offsets, _ in found),
        sum(offsets for offsets, _ in found),
        tuple(problem for _, problem in found if problem is not None),
    )


async def read_tails(
    connection: Connection, facts: ClusterFacts, broker_id: int, ends: Mapping[TopicPartition, int]
) -> dict[TopicPartition, int]:
    """Return checksums of the last batches of the replicas that no other broker has.

    Nothing else shows whether the broker that starts in its place has the same records.
    """
    alone = [
        name
        for name, view in facts.partitions()
        if view.replicas == (broker_id,) and not facts.is_compacted(name.topic)
    ]
    starts = await connection.admin.list_offsets(dict.fromkeys(alone, EARLIEST))
    node = facts.brokers[broker_id].node
    return {
        name: await _digest(connection, node, name, ends[name] - 1, ends[name])
        for name, each in starts.items()
        if ends.get(name, 0) > each.offset
    }


async def _missing(
    connection: Connection, node: BrokerAddress, name: TopicPartition, end: int, patience_s: float
) -> KafkaError | None:
    """Return why a replica cannot be read at this offset, or None if it goes that far.

    Both kinds of broker reject a fetch beyond the end of the log.
    """
    ends_at = asyncio.get_running_loop().time() + patience_s
    while True:
        request = _request(name, end)
        answer = await connection.cluster.call(node, FETCH, request, FetchResponse, _VERSION)
        code = answer.responses[0].partitions[0].error_code
        if not code:
            return None
        # A broker that has just started may not serve the replica yet.
        if asyncio.get_running_loop().time() > ends_at:
            return broker_error(code, f"partition {name}")
        await asyncio.sleep(_PAUSE_S)


async def _digest(
    connection: Connection, node: BrokerAddress, name: TopicPartition, start: int, end: int
) -> int:
    """Return a checksum over the batches of a replica that begin in this range."""
    digest, offset = 0, start
    ends_at = asyncio.get_running_loop().time() + _PATIENCE_S
    while offset < end:
        request = _request(name, offset)
        answer = await connection.cluster.call(node, FETCH, request, FetchResponse, _VERSION)
        [partition] = answer.responses[0].partitions
        check(partition.error_code, f"partition {name} on broker {node.node_id}")
        content = partition.records or b""
        assert isinstance(content, bytes | bytearray | memoryview), "the response was not parsed"
        batches = list(_batches(content, offset, end))
        if not batches:
            # A follower learns the high watermark from the leader a little later.
            if asyncio.get_running_loop().time() > ends_at:
                raise RequestTimedOut(f"{name} on broker {node.node_id} ends at {offset}")
            await asyncio.sleep(_PAUSE_S)
        for base, last, crc in batches:
            digest = zlib.crc32(_BATCH.pack(base, last - base, crc), digest)
            offset = last + 1
    return digest


def _batches(content: Buffer, start: int, end: int) -> Iterable[tuple[int, int, int]]:
    """Yield the first and last offset and the checksum of each batch, whose records are intact."""
    for position, header in iterate_batches(content):
        # A batch may begin before the offset that was requested.
        if header.last_offset < start or header.base_offset >= end:
            continue
        crc = header.crc if verify_crc(content, position, header) else 0
        yield header.base_offset, header.last_offset, crc & 0xFFFFFFFF


def _request(name: TopicPartition, offset: int) -> FetchRequest:
    partition = FetchPartition(
        partition=name.partition, fetch_offset=offset, partition_max_bytes=_PIECE_BYTES
    )
    return FetchRequest(
        replica_id=_ANY_REPLICA,
        max_bytes=_PIECE_BYTES,
        topics=[FetchTopic(topic=name.topic, partitions=[partition])],
    )
