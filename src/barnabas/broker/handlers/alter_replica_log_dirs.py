"""AlterReplicaLogDirs (key 34): move replicas between this broker's log directories (KIP-113).

The response says which moves have started. DescribeLogDirs reports their progress. A replica that
is already in the target directory is not moved. If this broker does not host the replica, the
response is REPLICA_NOT_AVAILABLE. If the replica is created later, it is placed in the requested
directory.
"""

from __future__ import annotations

import asyncio

from barnabas.broker.context import Context
from barnabas.broker.outcome import Outcome
from barnabas.broker.pieces import Lists, in_pieces
from barnabas.errors import NONE, ClusterAuthorizationFailed, KafkaError
from barnabas.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)
from barnabas.security.acl import CLUSTER_NAME
from barnabas.types import TopicPartition

_LISTS = Lists(("dirs", "topics", "partitions"), ("results", "partitions"))


def handle(context: Context, request: AlterReplicaLogDirsRequest) -> Outcome:
    return in_pieces(context, request, _LISTS, _handle)


def _handle(context: Context, request: AlterReplicaLogDirsRequest) -> Outcome:
    wanted = {
        TopicPartition(topic.name, partition): directory.path
        for directory in request.dirs
        for topic in directory.topics
        for partition in topic.partitions
    }
    if not context.is_allowed(CLUSTER_NAME):
        return _response(dict.fromkeys(wanted, ClusterAuthorizationFailed.code))
    return _alter(context, wanted)


async def _alter(
    context: Context, wanted: dict[TopicPartition, str]
) -> AlterReplicaLogDirsResponse:
    node = context.node
    codes: dict[TopicPartition, int] = {}
    for name, log_dir in wanted.items():
        await asyncio.sleep(0)
        # Move the replicas one at a time. Each move waits for the disk, and the controller's
        # requests can run between the moves.
        async with node.control.line:
            try:
                await node.moves.alter(name, log_dir)
            except KafkaError as error:
                codes[name] = error.code
            else:
                codes[name] = NONE
    return _response(codes)


def _response(codes: dict[TopicPartition, int]) -> AlterReplicaLogDirsResponse:
    topics: dict[str, AlterReplicaLogDirTopicResult] = {}
    for name, code in codes.items():
        topic = topics.setdefault(name.topic, AlterReplicaLogDirTopicResult(topic_name=name.topic))
        topic.partitions.append(
            AlterReplicaLogDirPartitionResult(partition_index=name.partition, error_code=code)
        )
    return AlterReplicaLogDirsResponse(results=list(topics.values()))
