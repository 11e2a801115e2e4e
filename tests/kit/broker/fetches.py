"""Fetch requests of one partition, and the values in their answers."""

from __future__ import annotations

from barnabas.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from barnabas.records.record import iterate_records


def fetch_request(
    topic: str | bytes, offset: int = 0, partition: int = 0, **fields: int
) -> FetchRequest:
    own = {
        name: fields.pop(name)
        for name in ("partition_max_bytes", "current_leader_epoch")
        if name in fields
    }
    own.setdefault("partition_max_bytes", 1 << 20)
    wanted = FetchPartition(partition=partition, fetch_offset=offset, **own)
    named = {"topic": topic} if isinstance(topic, str) else {"topic_id": topic}
    base = {"replica_id": -1, "max_wait_ms": 0, "min_bytes": 1, "max_bytes": 1 << 20}
    return FetchRequest(
        topics=[FetchTopic(partitions=[wanted], **named)], session_epoch=-1, **(base | fields)
    )


def only(response: FetchResponse):  # type: ignore[no-untyped-def]
    return response.responses[0].partitions[0]


def values(partition) -> list[bytes | None]:  # type: ignore[no-untyped-def]
    return [record.value for record in iterate_records(bytes(partition.records or b""))]
