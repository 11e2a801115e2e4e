"""OffsetDelete (key 47): deletes a group's committed offsets for some partitions (KIP-496)."""

from __future__ import annotations

from barnabas.protocol.message import Message, field
from barnabas.protocol.wire import INT16, INT32, STRING, Array


class OffsetDeletePartition(Message):
    partition_index: int = field(INT32)


class OffsetDeleteTopic(Message):
    name: str = field(STRING)
    partitions: list[OffsetDeletePartition] = field(Array(OffsetDeletePartition))


class OffsetDeleteRequest(Message):
    group_id: str = field(STRING)
    topics: list[OffsetDeleteTopic] = field(Array(OffsetDeleteTopic))


class OffsetDeletePartitionResponse(Message):
    partition_index: int = field(INT32)
    error_code: int = field(INT16)


class OffsetDeleteTopicResponse(Message):
    name: str = field(STRING)
    partitions: list[OffsetDeletePartitionResponse] = field(Array(OffsetDeletePartitionResponse))


class OffsetDeleteResponse(Message):
    error_code: int = field(INT16)
    throttle_time_ms: int = field(INT32, ignorable=True)
    topics: list[OffsetDeleteTopicResponse] = field(Array(OffsetDeleteTopicResponse))
