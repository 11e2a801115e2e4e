"""Fetch requests of one partition, and the values in their answers."""

from __future__ import annotations

from typing import Any

from barnabas.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from barnabas.records.record import Record, iterate_records


def fetch_request(
    topic: str | bytes, offset: int = 0, partition: int = 0, **fields: Any
) -> FetchRequest:
    own: dict[str, Any] = {
        name: fields.pop(name)
        for name in ("partition_max_bytes", "current_leader_epoch")
        if name in fields
    }
    own.setdefault("partition_max_bytes", 1 << 20)
    wanted = FetchPartition(partition=partition, fetch_offset=offset, **own)
    named: dict[str, Any] = {"topic": topic} if isinstance(topic, str) else {"topic_id": topic}
    base: dict[str, Any] = {
        "replica_id": -1,
        "max_wait_ms": 0,
        "min_bytes": 1,
        "max_bytes": 1 << 20,
    }
    return FetchRequest(
        topics=[FetchTopic(partitions=[wanted], **named)], session_epoch=-1, **(base | fields)
    )


def only(response: FetchResponse) -> PartitionData:
    return response.responses[0].partitions[0]


def records_in(partition: PartitionData) -> list[Record]:
    received: Any = partition.records or b""
    return list(iterate_records(bytes(received)))


def values(partition: PartitionData) -> list[bytes | None]:
    return [record.value for record in records_in(partition)]
