"""AlterPartition (key 56): a leader proposes an ISR to the controller (KIP-497).

Version 1 marks partitions that are recovering from an unclean election (KIP-704), version 2 adds
topic ids, and version 3 adds the broker epoch of each ISR member (KIP-903).
"""

from __future__ import annotations

from barnabas.protocol.message import Message, field
from barnabas.protocol.wire import INT8, INT16, INT32, INT64, STRING, UUID, Array


class BrokerState(Message):
    broker_id: int = field(INT32)
    broker_epoch: int = field(INT64, default=-1)


class PartitionData(Message):
    partition_index: int = field(INT32)
    leader_epoch: int = field(INT32)
    new_isr: list[int] = field(Array(INT32), versions="0-2")
    # KIP-903: the broker epoch of each member is sent, so that the controller can reject a member
    # that has restarted.
    new_isr_with_epochs: list[BrokerState] = field(Array(BrokerState), versions="3+")
    leader_recovery_state: int = field(INT8, versions="1+")  # 1: recovering
    partition_epoch: int = field(INT32)


class TopicData(Message):
    topic_name: str = field(STRING, versions="0-1", ignorable=True)
    topic_id: bytes = field(UUID, versions="2+", ignorable=True)
    partitions: list[PartitionData] = field(Array(PartitionData))


class AlterPartitionRequest(Message, flexible="0+"):
    broker_id: int = field(INT32)
    broker_epoch: int = field(INT64, default=-1)
    topics: list[TopicData] = field(Array(TopicData))


class PartitionResponse(Message):
    partition_index: int = field(INT32)
    error_code: int = field(INT16)
    leader_id: int = field(INT32)
    leader_epoch: int = field(INT32)
    isr: list[int] = field(Array(INT32))
    leader_recovery_state: int = field(INT8, versions="1+", ignorable=True)
    partition_epoch: int = field(INT32)


class TopicResponse(Message):
    topic_name: str = field(STRING, versions="0-1", ignorable=True)
    topic_id: bytes = field(UUID, versions="2+", ignorable=True)
    partitions: list[PartitionResponse] = field(Array(PartitionResponse))


class AlterPartitionResponse(Message, flexible="0+"):
    throttle_time_ms: int = field(INT32)
    error_code: int = field(INT16)
    topics: list[TopicResponse] = field(Array(TopicResponse))
