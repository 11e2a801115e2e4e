"""CreateTopics (key 19): creates topics with their partitions, replicas and configs.

Version 1 can validate topics without creating them, version 4 lets the broker choose the numbers
(-1, KIP-464), version 5 is flexible and returns the configs (KIP-525), and version 7 returns the
topic id (KIP-516).
"""

from __future__ import annotations

from barnabas.protocol.message import Message, field
from barnabas.protocol.wire import BOOLEAN, INT8, INT16, INT32, STRING, UUID, Array


class CreatableReplicaAssignment(Message):
    partition_index: int = field(INT32)
    broker_ids: list[int] = field(Array(INT32))


class CreatableTopicConfig(Message):
    name: str = field(STRING)
    value: str | None = field(STRING, nullable="0+")


class CreatableTopic(Message):
    name: str = field(STRING)
    num_partitions: int = field(INT32)
    replication_factor: int = field(INT16)
    assignments: list[CreatableReplicaAssignment] = field(Array(CreatableReplicaAssignment))
    configs: list[CreatableTopicConfig] = field(Array(CreatableTopicConfig))


class CreateTopicsRequest(Message, flexible="5+"):
    topics: list[CreatableTopic] = field(Array(CreatableTopic))
    timeout_ms: int = field(INT32, default=60000)
    # KIP-4: whether the topics are only checked, and not created.
    validate_only: bool = field(BOOLEAN, versions="1+")


class CreatableTopicConfigs(Message):
    name: str = field(STRING, versions="5+")
    value: str | None = field(STRING, versions="5+", nullable="5+")
    read_only: bool = field(BOOLEAN, versions="5+")
    config_source: int = field(INT8, versions="5+", ignorable=True, default=-1)
    is_sensitive: bool = field(BOOLEAN, versions="5+")


class CreatableTopicResult(Message):
    name: str = field(STRING)
    # KIP-516: the id differs from that of a later topic with the same name.
    topic_id: bytes = field(UUID, versions="7+", ignorable=True)
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, versions="1+", nullable="0+", ignorable=True)
    # KIP-525: if the client is not allowed to describe the configs, they are omitted.
    topic_config_error_code: int = field(INT16, versions="5+", ignorable=True, tag=0)
    num_partitions: int = field(INT32, versions="5+", ignorable=True, default=-1)
    replication_factor: int = field(INT16, versions="5+", ignorable=True, default=-1)
    configs: list[CreatableTopicConfigs] | None = field(
        Array(CreatableTopicConfigs), versions="5+", nullable="5+", ignorable=True
    )


class CreateTopicsResponse(Message, flexible="5+"):
    throttle_time_ms: int = field(INT32, versions="2+", ignorable=True)
    topics: list[CreatableTopicResult] = field(Array(CreatableTopicResult))
