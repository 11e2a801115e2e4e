"""Produce (key 0): appends record batches, and returns their offsets.

Version 3 introduced magic 2 and transactions, version 7 zstd, and version 8 errors for individual
records (KIP-467). Version 9 is flexible, and version 10 adds the current leader (KIP-951). Version
11 has the same format as version 10, and allows errors after which the transaction must be aborted
(KIP-890).
"""

from __future__ import annotations

from barnabas.protocol.message import Message, field
from barnabas.protocol.wire import INT16, INT32, INT64, RECORDS, STRING, Array, Records


class PartitionProduceData(Message):
    index: int = field(INT32)
    records: Records | None = field(RECORDS, nullable="0+")


class TopicProduceData(Message):
    name: str = field(STRING)
    partition_data: list[PartitionProduceData] = field(Array(PartitionProduceData))


class ProduceRequest(Message, flexible="9+"):
    # KIP-98: null if there is no transaction.
    transactional_id: str | None = field(STRING, versions="3+", nullable="3+", default=None)
    acks: int = field(INT16)
    timeout_ms: int = field(INT32)
    topic_data: list[TopicProduceData] = field(Array(TopicProduceData))


class BatchIndexAndErrorMessage(Message):
    batch_index: int = field(INT32, versions="8+")
    batch_index_error_message: str | None = field(
        STRING, versions="8+", nullable="8+", default=None
    )


class LeaderIdAndEpoch(Message):
    leader_id: int = field(INT32, versions="10+", default=-1)
    leader_epoch: int = field(INT32, versions="10+", default=-1)


class PartitionProduceResponse(Message):
    index: int = field(INT32)
    error_code: int = field(INT16)
    base_offset: int = field(INT64)
    log_append_time_ms: int = field(INT64, versions="2+", ignorable=True, default=-1)
    log_start_offset: int = field(INT64, versions="5+", ignorable=True, default=-1)
    # KIP-467: the records in the batch that are invalid, with the reasons.
    record_errors: list[BatchIndexAndErrorMessage] = field(
        Array(BatchIndexAndErrorMessage), versions="8+", ignorable=True
    )
    error_message: str | None = field(
        STRING, versions="8+", nullable="8+", ignorable=True, default=None
    )
    # KIP-951: sent with NOT_LEADER_OR_FOLLOWER, so that the producer does not have to request
    # metadata.
    current_leader: LeaderIdAndEpoch = field(LeaderIdAndEpoch, versions="10+", tag=0)


class TopicProduceResponse(Message):
    name: str = field(STRING)
    partition_responses: list[PartitionProduceResponse] = field(Array(PartitionProduceResponse))


class NodeEndpoint(Message):
    node_id: int = field(INT32, versions="10+")
    host: str = field(STRING, versions="10+")
    port: int = field(INT32, versions="10+")
    rack: str | None = field(STRING, versions="10+", nullable="10+", default=None)


class ProduceResponse(Message, flexible="9+"):
    responses: list[TopicProduceResponse] = field(Array(TopicProduceResponse))
    throttle_time_ms: int = field(INT32, versions="1+", ignorable=True)
    node_endpoints: list[NodeEndpoint] = field(Array(NodeEndpoint), versions="10+", tag=0)
