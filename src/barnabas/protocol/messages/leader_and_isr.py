"""LeaderAndIsr (key 4): the controller tells a broker which partitions to lead or follow.

Version 1 marks new partitions, version 2 groups partitions by topic and adds the broker epoch
(KIP-380), version 3 adds reassignments (KIP-455), version 4 is flexible, and version 5 adds topic
ids (KIP-516). Version 6 marks partitions that are recovering from an unclean election (KIP-704),
and version 7 marks requests from a KRaft controller.

Barnabas extends this API: the tagged field 10000 of a partition says why the controller changed the
partition (decision 41). It is empty if the partition is only sent again, and a request without
causes is identical to Kafka's. Tags from 10000 up do not collide with Kafka's tags, which start at
0.
"""

from __future__ import annotations

from typing import Final

from barnabas.protocol.message import Message, field
from barnabas.protocol.wire import BOOLEAN, INT8, INT16, INT32, INT64, STRING, UUID, Array

CAUSE_TAG: Final = 10000


class LeaderAndIsrPartitionState(Message):
    topic_name: str = field(STRING, versions="0-1", ignorable=True)
    partition_index: int = field(INT32)
    controller_epoch: int = field(INT32)
    leader: int = field(INT32)
    leader_epoch: int = field(INT32)
    isr: list[int] = field(Array(INT32))
    partition_epoch: int = field(INT32)
    replicas: list[int] = field(Array(INT32))
    # KIP-455: set while the partition is being reassigned.
    adding_replicas: list[int] = field(Array(INT32), versions="3+", ignorable=True)
    removing_replicas: list[int] = field(Array(INT32), versions="3+", ignorable=True)
    is_new: bool = field(BOOLEAN, versions="1+", ignorable=True)
    # KIP-704: after an unclean election, the leader must recover before it can serve clients.
    leader_recovery_state: int = field(INT8, versions="6+", ignorable=True)  # 1: recovering
    cause: str = field(STRING, versions="4+", tag=CAUSE_TAG, ignorable=True)


class LeaderAndIsrTopicState(Message):
    topic_name: str = field(STRING)
    topic_id: bytes = field(UUID, versions="5+", ignorable=True)
    partition_states: list[LeaderAndIsrPartitionState] = field(Array(LeaderAndIsrPartitionState))


class LeaderAndIsrLiveLeader(Message):
    broker_id: int = field(INT32)
    host_name: str = field(STRING)
    port: int = field(INT32)


class LeaderAndIsrRequest(Message, flexible="4+"):
    controller_id: int = field(INT32)
    # KIP-866: set while a cluster is being moved from ZooKeeper to KRaft.
    is_kraft_controller: bool = field(BOOLEAN, versions="7+")
    controller_epoch: int = field(INT32)
    # KIP-380: the registration of the broker to which the request is sent; -1 matches any
    # registration.
    broker_epoch: int = field(INT64, versions="2+", ignorable=True, default=-1)
    # KIP-516: if a request lists all replicas, the broker can find out which of its replicas it
    # should not have.
    type: int = field(INT8, versions="5+")  # 1: some of the partitions, 2: all of them
    ungrouped_partition_states: list[LeaderAndIsrPartitionState] = field(
        Array(LeaderAndIsrPartitionState), versions="0-1"
    )
    # KIP-380: if the partitions are grouped by topic, the requests in a large cluster are much
    # smaller.
    topic_states: list[LeaderAndIsrTopicState] = field(Array(LeaderAndIsrTopicState), versions="2+")
    live_leaders: list[LeaderAndIsrLiveLeader] = field(Array(LeaderAndIsrLiveLeader))


class LeaderAndIsrPartitionError(Message):
    topic_name: str = field(STRING, versions="0-4", ignorable=True)
    partition_index: int = field(INT32)
    error_code: int = field(INT16)


class LeaderAndIsrTopicError(Message):
    topic_id: bytes = field(UUID)
    partition_errors: list[LeaderAndIsrPartitionError] = field(Array(LeaderAndIsrPartitionError))


class LeaderAndIsrResponse(Message, flexible="4+"):
    error_code: int = field(INT16)
    partition_errors: list[LeaderAndIsrPartitionError] = field(
        Array(LeaderAndIsrPartitionError), versions="0-4"
    )
    topics: list[LeaderAndIsrTopicError] = field(Array(LeaderAndIsrTopicError), versions="5+")
