"""StopReplica (key 5): the controller tells a broker to stop hosting partitions.

Version 1 groups partitions by topic and adds the broker epoch (KIP-380), and version 2 is flexible.
Version 3 adds a leader epoch and a deletion flag for each partition (KIP-570), and version 4 marks
requests from a KRaft controller.
"""

from __future__ import annotations

from barnabas.protocol.message import Message, field
from barnabas.protocol.wire import BOOLEAN, INT16, INT32, INT64, STRING, Array


class StopReplicaPartitionV0(Message):
    topic_name: str = field(STRING)
    partition_index: int = field(INT32)


class StopReplicaTopicV1(Message):
    name: str = field(STRING)
    partition_indexes: list[int] = field(Array(INT32))


class StopReplicaPartitionState(Message):
    partition_index: int = field(INT32)
    # KIP-570: a delayed request must not stop a replica that has been assigned again in the
    # meantime. -2 is sent for a deletion.
    leader_epoch: int = field(INT32, default=-1)
    delete_partition: bool = field(BOOLEAN)


class StopReplicaTopicState(Message):
    topic_name: str = field(STRING)
    partition_states: list[StopReplicaPartitionState] = field(Array(StopReplicaPartitionState))


class StopReplicaRequest(Message, flexible="2+"):
    controller_id: int = field(INT32)
    # KIP-866: set while a cluster is being moved from ZooKeeper to KRaft.
    is_kraft_controller: bool = field(BOOLEAN, versions="4+")
    controller_epoch: int = field(INT32)
    # KIP-380: the registration of the broker to which the request is sent; -1 matches any
    # registration.
    broker_epoch: int = field(INT64, versions="1+", ignorable=True, default=-1)
    delete_partitions: bool = field(BOOLEAN, versions="0-2")
    ungrouped_partitions: list[StopReplicaPartitionV0] = field(
        Array(StopReplicaPartitionV0), versions="0"
    )
    topics: list[StopReplicaTopicV1] = field(Array(StopReplicaTopicV1), versions="1-2")
    topic_states: list[StopReplicaTopicState] = field(Array(StopReplicaTopicState), versions="3+")


class StopReplicaPartitionError(Message):
    topic_name: str = field(STRING)
    partition_index: int = field(INT32)
    error_code: int = field(INT16)


class StopReplicaResponse(Message, flexible="2+"):
    error_code: int = field(INT16)
    partition_errors: list[StopReplicaPartitionError] = field(Array(StopReplicaPartitionError))
