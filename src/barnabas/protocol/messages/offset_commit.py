"""OffsetCommit (key 8): commits offsets for a group.

Version 1 adds the member that commits and its generation. In versions 2 to 4, a request can set how
long its offsets are retained. Version 6 adds leader epochs (KIP-320), version 7 adds static members
(KIP-345), version 8 is flexible, and in version 9, the generation may be a member epoch (KIP-848).
In version 0, offsets were stored in ZooKeeper.
"""

from __future__ import annotations

from barnabas.protocol.message import Message, field
from barnabas.protocol.wire import INT16, INT32, INT64, STRING, Array


class OffsetCommitPartition(Message):
    partition_index: int = field(INT32)
    committed_offset: int = field(INT64)
    # KIP-320: the epoch of the last consumed record. It lets the next owner detect a truncation.
    committed_leader_epoch: int = field(INT32, versions="6+", default=-1, ignorable=True)
    # Only version 1 has this field.
    commit_timestamp: int = field(INT64, versions="1", default=-1)
    committed_metadata: str | None = field(STRING, nullable="0+")


class OffsetCommitTopic(Message):
    name: str = field(STRING)
    partitions: list[OffsetCommitPartition] = field(Array(OffsetCommitPartition))


class OffsetCommitRequest(Message, flexible="8+"):
    group_id: str = field(STRING)
    generation_id_or_member_epoch: int = field(INT32, versions="1+", default=-1, ignorable=True)
    member_id: str = field(STRING, versions="1+", ignorable=True)
    # KIP-345: the id of a static member.
    group_instance_id: str | None = field(STRING, versions="7+", nullable="7+", default=None)
    # KIP-211: from version 5 on, the time until a group's offsets expire is counted from the moment
    # when the last member leaves, not from the commit.
    retention_time_ms: int = field(INT64, versions="2-4", default=-1, ignorable=True)
    topics: list[OffsetCommitTopic] = field(Array(OffsetCommitTopic))

    @property
    def generation_id(self) -> int:
        """The name that is used for members of classic groups, and in TxnOffsetCommit."""
        return self.generation_id_or_member_epoch


class OffsetCommitPartitionResponse(Message):
    partition_index: int = field(INT32)
    error_code: int = field(INT16)


class OffsetCommitTopicResponse(Message):
    name: str = field(STRING)
    partitions: list[OffsetCommitPartitionResponse] = field(Array(OffsetCommitPartitionResponse))


class OffsetCommitResponse(Message, flexible="8+"):
    throttle_time_ms: int = field(INT32, versions="3+", ignorable=True)
    topics: list[OffsetCommitTopicResponse] = field(Array(OffsetCommitTopicResponse))
