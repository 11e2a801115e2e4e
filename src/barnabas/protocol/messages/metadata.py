"""Metadata (key 3): returns the brokers, the controller, and the leaders of partitions.

To request all topics, the list must be empty in version 0, and null from version 1 on. Version 4
lets a client disable auto-creation, version 5 adds offline replicas, version 7 adds leader epochs
(KIP-320), and version 8 adds the authorized operations (for the cluster, only up to version 10).
Version 9 is flexible, version 10 adds topic ids (KIP-516), and from version 12 on, a topic can be
requested by its id alone.
"""

from __future__ import annotations

from barnabas.protocol.message import Message, field
from barnabas.protocol.wire import BOOLEAN, INT16, INT32, STRING, UUID, Array

NO_OPERATIONS = -0x80000000
"""The value for the authorized operations of a topic or the cluster if they were not requested."""


class MetadataRequestTopic(Message):
    topic_id: bytes = field(UUID, versions="10+", ignorable=True)
    # KIP-516: null if the topic is identified by its id.
    name: str | None = field(STRING, nullable="10+")


class MetadataRequest(Message, flexible="9+"):
    topics: list[MetadataRequestTopic] | None = field(Array(MetadataRequestTopic), nullable="1+")
    allow_auto_topic_creation: bool = field(BOOLEAN, versions="4+", default=True)
    # KIP-430: since KIP-700, DescribeCluster returns the cluster's operations instead.
    include_cluster_authorized_operations: bool = field(BOOLEAN, versions="8-10")
    include_topic_authorized_operations: bool = field(BOOLEAN, versions="8+")


class MetadataResponseBroker(Message):
    node_id: int = field(INT32)
    host: str = field(STRING)
    port: int = field(INT32)
    # KIP-36: the rack, which is used to place replicas on different racks.
    rack: str | None = field(STRING, versions="1+", nullable="1+", ignorable=True, default=None)


class MetadataResponsePartition(Message):
    error_code: int = field(INT16)
    partition_index: int = field(INT32)
    leader_id: int = field(INT32)
    # KIP-320: when the epoch changes, a consumer checks whether the records that it has read still
    # exist.
    leader_epoch: int = field(INT32, versions="7+", ignorable=True, default=-1)
    replica_nodes: list[int] = field(Array(INT32))
    isr_nodes: list[int] = field(Array(INT32))
    # KIP-112: the replicas on brokers that are down or in log directories that have failed.
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
    # KIP-78: identifies the cluster in monitoring.
    cluster_id: str | None = field(
        STRING, versions="2+", nullable="2+", ignorable=True, default=None
    )
    controller_id: int = field(INT32, versions="1+", ignorable=True, default=-1)
    topics: list[MetadataResponseTopic] = field(Array(MetadataResponseTopic))
    cluster_authorized_operations: int = field(INT32, versions="8-10", default=NO_OPERATIONS)
