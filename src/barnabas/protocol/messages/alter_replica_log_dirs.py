"""AlterReplicaLogDirs (key 34): moves replicas between a broker's log directories (KIP-113)."""

from __future__ import annotations

from barnabas.protocol.message import Message, field
from barnabas.protocol.wire import INT16, INT32, STRING, Array


class AlterReplicaLogDirTopic(Message):
    name: str = field(STRING)
    partitions: list[int] = field(Array(INT32))


class AlterReplicaLogDir(Message):
    path: str = field(STRING)
    topics: list[AlterReplicaLogDirTopic] = field(Array(AlterReplicaLogDirTopic))


class AlterReplicaLogDirsRequest(Message, flexible="2+"):
    dirs: list[AlterReplicaLogDir] = field(Array(AlterReplicaLogDir))


class AlterReplicaLogDirPartitionResult(Message):
    partition_index: int = field(INT32)
    error_code: int = field(INT16)


class AlterReplicaLogDirTopicResult(Message):
    topic_name: str = field(STRING)
    partitions: list[AlterReplicaLogDirPartitionResult] = field(
        Array(AlterReplicaLogDirPartitionResult)
    )


class AlterReplicaLogDirsResponse(Message, flexible="2+"):
    throttle_time_ms: int = field(INT32)
    results: list[AlterReplicaLogDirTopicResult] = field(Array(AlterReplicaLogDirTopicResult))
