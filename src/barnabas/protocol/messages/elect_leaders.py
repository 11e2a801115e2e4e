"""ElectLeaders (key 43): elects the preferred replicas or any live replicas as leaders.

Version 1 adds unclean elections (KIP-460), and version 2 is flexible.
"""

from __future__ import annotations

from barnabas.protocol.message import Message, field
from barnabas.protocol.wire import INT8, INT16, INT32, STRING, Array


class TopicPartitions(Message):
    topic: str = field(STRING)
    partitions: list[int] = field(Array(INT32))


class ElectLeadersRequest(Message, flexible="2+"):
    election_type: int = field(INT8, versions="1+")  # 0: preferred, 1: unclean
    topic_partitions: list[TopicPartitions] | None = field(Array(TopicPartitions), nullable="0+")
    timeout_ms: int = field(INT32, default=60_000)


class PartitionResult(Message):
    partition_id: int = field(INT32)
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, nullable="0+", default=None)


class ReplicaElectionResult(Message):
    topic: str = field(STRING)
    partition_result: list[PartitionResult] = field(Array(PartitionResult))


class ElectLeadersResponse(Message, flexible="2+"):
    throttle_time_ms: int = field(INT32)
    error_code: int = field(INT16, versions="1+")
    replica_election_results: list[ReplicaElectionResult] = field(Array(ReplicaElectionResult))
