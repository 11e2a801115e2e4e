"""ListOffsets (key 2): returns the offset for a timestamp, or the start or the end of the log.

Version 1 returns one offset instead of a list, version 2 introduced isolation levels, and version 4
introduced leader epochs (KIP-320). Version 6 is flexible, version 7 supports the largest timestamp
(KIP-734), and versions 8 and 9 support the ends of tiered storage.
"""

from __future__ import annotations

from barnabas.protocol.message import Message, field
from barnabas.protocol.wire import INT8, INT16, INT32, INT64, STRING, Array


class ListOffsetsPartition(Message):
    partition_index: int = field(INT32)
    # KIP-320: the leader epoch that the sender knows.
    current_leader_epoch: int = field(INT32, versions="4+", ignorable=True, default=-1)
    timestamp: int = field(INT64)
    # In version 0, the response lists up to this many segments.
    max_num_offsets: int = field(INT32, versions="0", default=1)


class ListOffsetsTopic(Message):
    name: str = field(STRING)
    partitions: list[ListOffsetsPartition] = field(Array(ListOffsetsPartition))


class ListOffsetsRequest(Message, flexible="6+"):
    replica_id: int = field(INT32)
    # KIP-98: with read_committed, the log ends at the last stable offset.
    isolation_level: int = field(INT8, versions="2+")
    topics: list[ListOffsetsTopic] = field(Array(ListOffsetsTopic))


class ListOffsetsPartitionResponse(Message):
    partition_index: int = field(INT32)
    error_code: int = field(INT16)
    old_style_offsets: list[int] = field(Array(INT64), versions="0")
    timestamp: int = field(INT64, versions="1+", default=-1)
    offset: int = field(INT64, versions="1+", default=-1)
    # KIP-320: the epoch of the record at this offset.
    leader_epoch: int = field(INT32, versions="4+", default=-1)


class ListOffsetsTopicResponse(Message):
    name: str = field(STRING)
    partitions: list[ListOffsetsPartitionResponse] = field(Array(ListOffsetsPartitionResponse))


class ListOffsetsResponse(Message, flexible="6+"):
    throttle_time_ms: int = field(INT32, versions="2+", ignorable=True)
    topics: list[ListOffsetsTopicResponse] = field(Array(ListOffsetsTopicResponse))
