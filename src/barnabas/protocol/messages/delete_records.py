"""DeleteRecords (key 21): deletes all records below an offset (KIP-107).

Version 2 is flexible. Version 1 changed only how clients are throttled.
"""

from __future__ import annotations

from barnabas.protocol.message import Message, field
from barnabas.protocol.wire import INT16, INT32, INT64, STRING, Array


class DeleteRecordsPartition(Message):
    partition_index: int = field(INT32)
    offset: int = field(INT64)  # the first offset to keep; -1: the high watermark


class DeleteRecordsTopic(Message):
    name: str = field(STRING)
    partitions: list[DeleteRecordsPartition] = field(Array(DeleteRecordsPartition))


class DeleteRecordsRequest(Message, flexible="2+"):
    topics: list[DeleteRecordsTopic] = field(Array(DeleteRecordsTopic))
    timeout_ms: int = field(INT32)


class DeleteRecordsPartitionResult(Message):
    partition_index: int = field(INT32)
    low_watermark: int = field(INT64)  # the smallest log start of the live replicas; -1: an error
    error_code: int = field(INT16)


class DeleteRecordsTopicResult(Message):
    name: str = field(STRING)
    partitions: list[DeleteRecordsPartitionResult] = field(Array(DeleteRecordsPartitionResult))


class DeleteRecordsResponse(Message, flexible="2+"):
    throttle_time_ms: int = field(INT32)
    topics: list[DeleteRecordsTopicResult] = field(Array(DeleteRecordsTopicResult))
