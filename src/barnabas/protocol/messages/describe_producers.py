"""DescribeProducers (key 61): returns a partition's producers and their open transactions."""

from __future__ import annotations

from barnabas.protocol.message import Message, field
from barnabas.protocol.wire import INT16, INT32, INT64, STRING, Array


class DescribeProducersTopic(Message):
    name: str = field(STRING)
    partition_indexes: list[int] = field(Array(INT32))


class DescribeProducersRequest(Message, flexible="0+"):
    topics: list[DescribeProducersTopic] = field(Array(DescribeProducersTopic))


class ProducerState(Message):
    producer_id: int = field(INT64)
    producer_epoch: int = field(INT32)
    last_sequence: int = field(INT32, default=-1)
    last_timestamp: int = field(INT64, default=-1)
    coordinator_epoch: int = field(INT32)
    current_txn_start_offset: int = field(INT64, default=-1)


class DescribeProducersPartition(Message):
    partition_index: int = field(INT32)
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, nullable="0+", default=None)
    active_producers: list[ProducerState] = field(Array(ProducerState))


class DescribeProducersTopicResponse(Message):
    name: str = field(STRING)
    partitions: list[DescribeProducersPartition] = field(Array(DescribeProducersPartition))


class DescribeProducersResponse(Message, flexible="0+"):
    throttle_time_ms: int = field(INT32)
    topics: list[DescribeProducersTopicResponse] = field(Array(DescribeProducersTopicResponse))
