"""OffsetFetch (key 9): returns the committed offsets of groups.

Version 2 can request all of a group's offsets and adds an error for the group, 5 adds leader epochs
(KIP-320), 6 is flexible, and 7 can require offsets that no open transaction may still change
(KIP-447). Version 8 requests several groups at once (KIP-709), and 9 adds the requesting member
(KIP-848). Version 0 read offsets from ZooKeeper.
"""

from __future__ import annotations

from barnabas.protocol.message import Message, field
from barnabas.protocol.wire import BOOLEAN, INT16, INT32, INT64, STRING, Array


class OffsetFetchTopic(Message):
    name: str = field(STRING)
    partition_indexes: list[int] = field(Array(INT32))


class OffsetFetchGroup(Message):
    group_id: str = field(STRING)
    member_id: str | None = field(
        STRING, versions="9+", nullable="9+", default=None, ignorable=True
    )
    # KIP-848: only members that use the newer protocol have an epoch.
    member_epoch: int = field(INT32, versions="9+", default=-1, ignorable=True)
    topics: list[OffsetFetchTopic] | None = field(Array(OffsetFetchTopic), nullable="8+")


class OffsetFetchRequest(Message, flexible="6+"):
    group_id: str = field(STRING, versions="0-7")
    topics: list[OffsetFetchTopic] | None = field(
        Array(OffsetFetchTopic), versions="0-7", nullable="2-7"
    )
    # KIP-709: many groups in one request.
    groups: list[OffsetFetchGroup] = field(Array(OffsetFetchGroup), versions="8+")
    # KIP-447: an offset in an open transaction causes UNSTABLE_OFFSET_COMMIT; the previous offset
    # is not returned.
    require_stable: bool = field(BOOLEAN, versions="7+")


class OffsetFetchPartitionResponse(Message):
    partition_index: int = field(INT32)
    committed_offset: int = field(INT64)
    # KIP-320: the epoch of the last consumed record; with it, the next owner detects a truncation.
    committed_leader_epoch: int = field(INT32, versions="5+", default=-1, ignorable=True)
    metadata: str | None = field(STRING, nullable="0+")
    error_code: int = field(INT16)


class OffsetFetchTopicResponse(Message):
    name: str = field(STRING)
    partitions: list[OffsetFetchPartitionResponse] = field(Array(OffsetFetchPartitionResponse))


class OffsetFetchGroupResponse(Message):
    group_id: str = field(STRING)
    topics: list[OffsetFetchTopicResponse] = field(Array(OffsetFetchTopicResponse))
    error_code: int = field(INT16)


class OffsetFetchResponse(Message, flexible="6+"):
    throttle_time_ms: int = field(INT32, versions="3+", ignorable=True)
    topics: list[OffsetFetchTopicResponse] = field(Array(OffsetFetchTopicResponse), versions="0-7")
    error_code: int = field(INT16, versions="2-7", ignorable=True)
    groups: list[OffsetFetchGroupResponse] = field(Array(OffsetFetchGroupResponse), versions="8+")
