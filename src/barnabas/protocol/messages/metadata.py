"""Metadata (key 3): returns the brokers, the controller, and the partition leaders.

In version 0, an empty list requests all topics; from version 1 on, null does. Version 4 lets a
client disable auto-creation, 5 adds offline replicas, 7 leader epochs (KIP-320), and 8 the
authorized operations (the cluster's only up to version 10). Version 9 is flexible, 10 adds topic
ids (KIP-516), and 12 allows requests only by id.
"""

from __future__ import annotations

from barnabas.protocol.message import Message, field
from barnabas.protocol.wire import BOOLEAN, INT16, INT32, STRING, UUID, Array

NO_OPERATIONS = -0x80000000
"""The authorized operations of a topic or cluster, if not requested."""


class MetadataRequestTopic(Message):
    topic_id: bytes = field(UUID, versions="10+", ignorable=True)
    # KIP-516: null if the topic is requested by its id.
    name: str | None = field(STRING, nullable="10+")


class MetadataRequest(Message, flexible="9+"):
    topics: list[MetadataRequestTopic] | None = field(Array(MetadataRequestTopic), nullable="1+")
    allow_auto_topic_creation: bool = field(BOOLEAN, versions="4+", default=True)
    # KIP-430; KIP-700 moved the cluster's operations to DescribeCluster.
    include_cluster_authorized_operations: bool = field(BOOLEAN, versions="8-10")
    include_topic_authorized_operations: bool = field(BOOLEAN, versions="8+")


class MetadataResponseBroker(Message):
    node_id: int = field(INT32)
    host: str = field(STRING)
    port: int = field(INT32)
    # KIP-36: the rack, for placing replicas on different racks.
    rack: str | None = field(STRING, versions="1+", nullable="1+", ignorable=True, default=None)


class MetadataResponsePartition(Message):
    error_code: int = field(INT16)
    partition_index: int = field(INT32)
    leader_id: int = field(INT32)
    # KIP-320: when the epoch changes, consumers check that the records they have read still exist.
    leader_epoch: int = field(INT32, versions="7+", ignorable=True, default=-1)
    replica_nodes: list[int] = field(Array(INT32))
    isr_nodes: list[int] = field(Array(INT32))
    # KIP-112: replicas in failed log directories or on brokers that are down.
    offline_replicas: list[int] = field(Array(INT32), versions="5+", ignorable=True)


class MetadataResponseTopic(Message):
    error_code: int = field(INT16)
    name: str | None = field(STRING, nullable="12+")
    topic_id: bytes = field(UUID, versions="10+", ignorable=True)
    is_internal: bool = field(BOOLEAN, versions="1+", ignorable=True)
    partitions: list[MetadataResponsePartition] = field(Array(MetadataResponsePartition))
    topic_authorized_operations: int = field(INT32, versions="8+", default=NO_OPERATIONS)


class MetadataResponse(Message, flexible="9+"):
    throttle_time_ms: int = field(INT32, versions="3+", ignorable=True)
    brokers: list[MetadataResponseBroker] = field(Array(MetadataResponseBroker))
    # KIP-78: identifies the cluster, for monitoring.
    cluster_id: str | None = field(
        STRING, versions="2+", nullable="2+", ignorable=True, default=None
    )
    controller_id: int = field(INT32, versions="1+", ignorable=True, default=-1)
    topics: list[MetadataResponseTopic] = field(Array(MetadataResponseTopic))
    cluster_authorized_operations: int = field(INT32, versions="8-10", default=NO_OPERATIONS)
