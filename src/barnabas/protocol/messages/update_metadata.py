"""UpdateMetadata (key 6): the controller sends a broker the metadata that its clients need.

Version 1 adds all endpoints of a broker, version 2 adds the rack, version 3 adds the names of the
listeners, and version 4 adds offline replicas. Version 5 groups partitions by topic and adds the
broker epoch (KIP-380), version 6 is flexible, version 7 adds topic ids (KIP-516), and version 8
marks requests from a KRaft controller.
"""

from __future__ import annotations

from barnabas.protocol.message import Message, field
from barnabas.protocol.wire import BOOLEAN, INT8, INT16, INT32, INT64, STRING, UUID, Array


class UpdateMetadataPartitionState(Message):
    topic_name: str = field(STRING, versions="0-4", ignorable=True)
    partition_index: int = field(INT32)
    controller_epoch: int = field(INT32)
    leader: int = field(INT32)  # -1: none, -2: the topic is being deleted
    leader_epoch: int = field(INT32)
    isr: list[int] = field(Array(INT32))
    zk_version: int = field(INT32)
    replicas: list[int] = field(Array(INT32))
    # KIP-112: the replicas on brokers that are down or in log directories that have failed.
    offline_replicas: list[int] = field(Array(INT32), versions="4+", ignorable=True)


class UpdateMetadataTopicState(Message):
    topic_name: str = field(STRING)
    topic_id: bytes = field(UUID, versions="7+", ignorable=True)
    partition_states: list[UpdateMetadataPartitionState] = field(
        Array(UpdateMetadataPartitionState)
    )


class UpdateMetadataEndpoint(Message):
    port: int = field(INT32)
    host: str = field(STRING)
    listener: str = field(STRING, versions="3+", ignorable=True)
    security_protocol: int = field(INT16)


class UpdateMetadataBroker(Message):
    id: int = field(INT32)
    v0_host: str = field(STRING, versions="0", ignorable=True)
    v0_port: int = field(INT32, versions="0", ignorable=True)
    endpoints: list[UpdateMetadataEndpoint] = field(
        Array(UpdateMetadataEndpoint), versions="1+", ignorable=True
    )
    # KIP-36: the rack, which is used to place replicas on different racks.
    rack: str | None = field(STRING, versions="2+", nullable="2+", ignorable=True, default=None)


class UpdateMetadataRequest(Message, flexible="6+"):
    controller_id: int = field(INT32)
    # KIP-866: set while a cluster is being moved from ZooKeeper to KRaft.
    is_kraft_controller: bool = field(BOOLEAN, versions="8+")
    type: int = field(INT8, versions="8+", tag=0, ignorable=True)  # used only by KRaft
    controller_epoch: int = field(INT32)
    # KIP-380: the registration of the broker to which the request is sent; -1 matches any
    # registration.
    broker_epoch: int = field(INT64, versions="5+", ignorable=True, default=-1)
    ungrouped_partition_states: list[UpdateMetadataPartitionState] = field(
        Array(UpdateMetadataPartitionState), versions="0-4"
    )
    topic_states: list[UpdateMetadataTopicState] = field(
        Array(UpdateMetadataTopicState), versions="5+"
    )
    live_brokers: list[UpdateMetadataBroker] = field(Array(UpdateMetadataBroker))


class UpdateMetadataResponse(Message, flexible="6+"):
    error_code: int = field(INT16)
