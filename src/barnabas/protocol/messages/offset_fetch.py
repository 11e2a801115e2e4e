"""OffsetFetch (key 9): returns the committed offsets of groups.

Version 2 can request all offsets of a group and adds an error for the group, version 5 adds leader
epochs (KIP-320), version 6 is flexible, and in version 7, a client can ask for offsets that no open
transaction can change any more (KIP-447). Version 8 can request several groups (KIP-709), and
version 9 adds the member that makes the request (KIP-848). In version 0, offsets were read from
ZooKeeper.
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
    # KIP-848: a member has an epoch only if it uses the newer protocol.
    member_epoch: int = field(INT32, versions="9+", default=-1, ignorable=True)
    topics: list[OffsetFetchTopic] | None = field(Array(OffsetFetchTopic), nullable="8+")


class OffsetFetchRequest(Message, flexible="6+"):
    group_id: str = field(STRING, versions="0-7")
    topics: list[OffsetFetchTopic] | None = field(
        Array(OffsetFetchTopic), versions="0-7", nullable="2-7"
    )
    # KIP-709: a request can contain several groups.
    groups: list[OffsetFetchGroup] = field(Array(OffsetFetchGroup), versions="8+")
    # KIP-447: if the offset is part of an open transaction, UNSTABLE_OFFSET_COMMIT is returned
    # instead of the previous offset.
    require_stable: bool = field(BOOLEAN, versions="7+")


class OffsetFetchPartitionResponse(Message):
    partition_index: int = field(INT32)
    committed_offset: int = field(INT64)
    # KIP-320: the epoch of the last consumed record. It lets the next owner detect a truncation.
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
