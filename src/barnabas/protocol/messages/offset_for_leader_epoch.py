"""OffsetForLeaderEpoch (key 23): returns where a leader epoch ends in the log (KIP-101).

Version 1 also returns the epoch (KIP-279), version 2 adds the current leader epoch of the requester
(KIP-320), version 3 adds its replica id, and version 4 is flexible.
"""

from __future__ import annotations

from barnabas.protocol.message import Message, field
from barnabas.protocol.wire import INT16, INT32, INT64, STRING, Array


class OffsetForLeaderPartition(Message):
    partition: int = field(INT32)
    # KIP-320: the leader epoch that the sender knows.
    current_leader_epoch: int = field(INT32, versions="2+", ignorable=True, default=-1)
    leader_epoch: int = field(INT32)


class OffsetForLeaderTopic(Message):
    topic: str = field(STRING)
    partitions: list[OffsetForLeaderPartition] = field(Array(OffsetForLeaderPartition))


class OffsetForLeaderEpochRequest(Message, flexible="4+"):
    # KIP-320: a consumer sends -1.
    replica_id: int = field(INT32, versions="3+", ignorable=True, default=-2)
    topics: list[OffsetForLeaderTopic] = field(Array(OffsetForLeaderTopic))


class EpochEndOffset(Message):
    error_code: int = field(INT16)
    partition: int = field(INT32)
    leader_epoch: int = field(INT32, versions="1+", ignorable=True, default=-1)
    end_offset: int = field(INT64, default=-1)


class OffsetForLeaderTopicResult(Message):
    topic: str = field(STRING)
    partitions: list[EpochEndOffset] = field(Array(EpochEndOffset))


class OffsetForLeaderEpochResponse(Message, flexible="4+"):
    throttle_time_ms: int = field(INT32, versions="2+", ignorable=True)
    topics: list[OffsetForLeaderTopicResult] = field(Array(OffsetForLeaderTopicResult))
