"""TxnOffsetCommit (key 28): commits offsets as part of a producer's transaction (KIP-98).

Version 2 adds leader epochs (KIP-320), version 3 is flexible and adds the member that commits and
its generation (KIP-447), and version 4 only adds an error code.
"""

from __future__ import annotations

from barnabas.protocol.message import Message, field
from barnabas.protocol.wire import INT16, INT32, INT64, STRING, Array


class TxnOffsetCommitPartition(Message):
    partition_index: int = field(INT32)
    committed_offset: int = field(INT64)
    # KIP-320: the epoch of the last consumed record. It lets the next owner detect a truncation.
    committed_leader_epoch: int = field(INT32, versions="2+", default=-1, ignorable=True)
    committed_metadata: str | None = field(STRING, nullable="0+")


class TxnOffsetCommitTopic(Message):
    name: str = field(STRING)
    partitions: list[TxnOffsetCommitPartition] = field(Array(TxnOffsetCommitPartition))


class TxnOffsetCommitRequest(Message, flexible="3+"):
    transactional_id: str = field(STRING)
    group_id: str = field(STRING)
    producer_id: int = field(INT64)
    producer_epoch: int = field(INT16)
    # KIP-447: when a member is replaced in a rebalance, it is fenced, even if its producer is not
    # fenced.
    generation_id: int = field(INT32, versions="3+", default=-1)
    member_id: str = field(STRING, versions="3+")
    group_instance_id: str | None = field(STRING, versions="3+", nullable="3+", default=None)
    topics: list[TxnOffsetCommitTopic] = field(Array(TxnOffsetCommitTopic))


class TxnOffsetCommitPartitionResponse(Message):
    partition_index: int = field(INT32)
    error_code: int = field(INT16)


class TxnOffsetCommitTopicResponse(Message):
    name: str = field(STRING)
    partitions: list[TxnOffsetCommitPartitionResponse] = field(
        Array(TxnOffsetCommitPartitionResponse)
    )


class TxnOffsetCommitResponse(Message, flexible="3+"):
    throttle_time_ms: int = field(INT32)
    topics: list[TxnOffsetCommitTopicResponse] = field(Array(TxnOffsetCommitTopicResponse))
