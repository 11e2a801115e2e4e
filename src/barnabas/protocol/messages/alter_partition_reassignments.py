"""AlterPartitionReassignments (key 45): starts or cancels partition reassignments (KIP-455)."""

from __future__ import annotations

from barnabas.protocol.message import Message, field
from barnabas.protocol.wire import INT16, INT32, STRING, Array


class ReassignablePartition(Message):
    partition_index: int = field(INT32)
    replicas: list[int] | None = field(Array(INT32), nullable="0+", default=None)  # None: cancel


class ReassignableTopic(Message):
    name: str = field(STRING)
    partitions: list[ReassignablePartition] = field(Array(ReassignablePartition))


class AlterPartitionReassignmentsRequest(Message, flexible="0+"):
    timeout_ms: int = field(INT32, default=60_000)
    topics: list[ReassignableTopic] = field(Array(ReassignableTopic))


class ReassignablePartitionResponse(Message):
    partition_index: int = field(INT32)
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, nullable="0+", default=None)


class ReassignableTopicResponse(Message):
    name: str = field(STRING)
    partitions: list[ReassignablePartitionResponse] = field(Array(ReassignablePartitionResponse))


class AlterPartitionReassignmentsResponse(Message, flexible="0+"):
    throttle_time_ms: int = field(INT32)
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, nullable="0+")
    responses: list[ReassignableTopicResponse] = field(Array(ReassignableTopicResponse))
