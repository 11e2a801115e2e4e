"""OffsetCommit (key 8): commits a group's offsets.

Version 1 adds the committing member and its generation; in 2 to 4, a request may set the retention
of its offsets. Version 6 adds leader epochs (KIP-320), 7 static members (KIP-345), 8 is flexible,
and in 9 the generation may be a member epoch (KIP-848). Version 0 stored offsets in ZooKeeper.
"""

from __future__ import annotations

from barnabas.protocol.message import Message, field
from barnabas.protocol.wire import INT16, INT32, INT64, STRING, Array


class OffsetCommitPartition(Message):
    partition_index: int = field(INT32)
    committed_offset: int = field(INT64)
    # KIP-320: the epoch of the last consumed record, from which the next owner detects a
    # truncation.
    committed_leader_epoch: int = field(INT32, versions="6+", default=-1, ignorable=True)
    # Version 1 only.
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
    # KIP-211: from version 5 on, a group's offsets expire some time after its last member has left,
    # not after the commit.
    retention_time_ms: int = field(INT64, versions="2-4", default=-1, ignorable=True)
    topics: list[OffsetCommitTopic] = field(Array(OffsetCommitTopic))

    @property
    def generation_id(self) -> int:
        """The name used for classic group members, and in TxnOffsetCommit."""
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
