"""Fetch (key 1): returns record batches, starting at an offset, to consumers and followers.

Version 4 introduced magic 2 and isolation levels, version 7 sessions (KIP-227), version 9 leader
epochs (KIP-320), and version 11 the rack (KIP-392). Version 12 is flexible and detects logs that
have diverged (KIP-595), version 13 identifies topics by their ids (KIP-516), version 15 moves the
replica id to a tagged field (KIP-903), version 16 adds the current leader (KIP-951), and version 17
adds the log directory (KIP-853). Versions below 4 are defined here, but they are not served.
"""

from __future__ import annotations

from barnabas.protocol.message import Message, field
from barnabas.protocol.wire import INT8, INT16, INT32, INT64, RECORDS, STRING, UUID, Array, Records


# KIP-903: a follower sends the epoch of its broker. If the broker has restarted since, it may have
# lost records, and fetches from before the restart do not count.
class ReplicaState(Message):
    replica_id: int = field(INT32, versions="15+", default=-1)
    replica_epoch: int = field(INT64, versions="15+", default=-1)


class FetchPartition(Message):
    partition: int = field(INT32)
    # KIP-320: the leader epoch that the sender knows.
    current_leader_epoch: int = field(INT32, versions="9+", ignorable=True, default=-1)
    fetch_offset: int = field(INT64)
    # KIP-595: the epoch of the follower's last record. It shows the leader whether the logs have
    # diverged.
    last_fetched_epoch: int = field(INT32, versions="12+", default=-1)
    log_start_offset: int = field(INT64, versions="5+", ignorable=True, default=-1)
    partition_max_bytes: int = field(INT32)
    # KIP-853: used only for replicas of KRaft's log.
    replica_directory_id: bytes = field(UUID, versions="17+", ignorable=True, tag=0)


# KIP-516: from version 13 on, a topic is identified by its id and not by its name.
class FetchTopic(Message):
    topic: str = field(STRING, versions="0-12", ignorable=True)
    topic_id: bytes = field(UUID, versions="13+", ignorable=True)
    partitions: list[FetchPartition] = field(Array(FetchPartition))


# KIP-227: partitions to be removed from the fetch session.
class ForgottenTopic(Message):
    topic: str = field(STRING, versions="7-12", ignorable=True)
    topic_id: bytes = field(UUID, versions="13+", ignorable=True)
    partitions: list[int] = field(Array(INT32), versions="7+")


class FetchRequest(Message, flexible="12+"):
    # KIP-595: sent only by voters in KRaft.
    cluster_id: str | None = field(
        STRING, versions="12+", nullable="12+", ignorable=True, default=None, tag=0
    )
    replica_id: int = field(INT32, versions="0-14", default=-1)
    replica_state: ReplicaState = field(ReplicaState, versions="15+", tag=1)
    max_wait_ms: int = field(INT32)
    min_bytes: int = field(INT32)
    max_bytes: int = field(INT32, versions="3+", ignorable=True, default=0x7FFFFFFF)
    # KIP-98: 1 is read_committed.
    isolation_level: int = field(INT8, versions="4+", ignorable=True)
    session_id: int = field(INT32, versions="7+", ignorable=True)
    # KIP-227: 0 starts a session; -1 ends the session, or means that none is used.
    session_epoch: int = field(INT32, versions="7+", ignorable=True, default=-1)
    topics: list[FetchTopic] = field(Array(FetchTopic))
    forgotten_topics_data: list[ForgottenTopic] = field(Array(ForgottenTopic), versions="7+")
    # KIP-392: the rack of the consumer, which is used to choose a nearby replica.
    rack_id: str = field(STRING, versions="11+", ignorable=True)


class EpochEndOffset(Message):
    epoch: int = field(INT32, versions="12+", default=-1)
    end_offset: int = field(INT64, versions="12+", default=-1)


class LeaderIdAndEpoch(Message):
    leader_id: int = field(INT32, versions="12+", default=-1)
    leader_epoch: int = field(INT32, versions="12+", default=-1)


class SnapshotId(Message):
    end_offset: int = field(INT64, default=-1)
    epoch: int = field(INT32, default=-1)


class AbortedTransaction(Message):
    producer_id: int = field(INT64, versions="4+")
    first_offset: int = field(INT64, versions="4+")


class PartitionData(Message):
    partition_index: int = field(INT32)
    error_code: int = field(INT16)
    high_watermark: int = field(INT64)
    last_stable_offset: int = field(INT64, versions="4+", ignorable=True, default=-1)
    log_start_offset: int = field(INT64, versions="5+", ignorable=True, default=-1)
    # KIP-595: where the follower must truncate its log, if the logs have diverged.
    diverging_epoch: EpochEndOffset = field(EpochEndOffset, versions="12+", tag=0)
    # KIP-951: sent with NOT_LEADER_OR_FOLLOWER, so that the client does not have to request
    # metadata. `node_endpoints` contains the address of the leader.
    current_leader: LeaderIdAndEpoch = field(LeaderIdAndEpoch, versions="12+", tag=1)
    # KIP-630: used only for KRaft's log.
    snapshot_id: SnapshotId = field(SnapshotId, versions="12+", tag=2)
    # KIP-98: a consumer with read_committed skips the records of these transactions.
    aborted_transactions: list[AbortedTransaction] | None = field(
        Array(AbortedTransaction), versions="4+", nullable="4+", ignorable=True
    )
    # KIP-392: -1 if the consumer should read from the leader.
    preferred_read_replica: int = field(INT32, versions="11+", default=-1)
    records: Records | None = field(RECORDS, nullable="0+")


class FetchableTopicResponse(Message):
    topic: str = field(STRING, versions="0-12", ignorable=True)
    topic_id: bytes = field(UUID, versions="13+", ignorable=True)
    partitions: list[PartitionData] = field(Array(PartitionData))


class NodeEndpoint(Message):
    node_id: int = field(INT32, versions="16+")
    host: str = field(STRING, versions="16+")
    port: int = field(INT32, versions="16+")
    rack: str | None = field(STRING, versions="16+", nullable="16+", default=None)


class FetchResponse(Message, flexible="12+"):
    throttle_time_ms: int = field(INT32, versions="1+", ignorable=True)
    error_code: int = field(INT16, versions="7+", ignorable=True)
    session_id: int = field(INT32, versions="7+")
    responses: list[FetchableTopicResponse] = field(Array(FetchableTopicResponse))
    node_endpoints: list[NodeEndpoint] = field(Array(NodeEndpoint), versions="16+", tag=0)
