"""DescribeCluster (key 60): returns the cluster's id, controller and brokers, without topics.

Version 1 can request controllers instead (KIP-919), which a cluster with ZooKeeper rejects.
"""

from __future__ import annotations

from barnabas.protocol.message import Message, field
from barnabas.protocol.wire import BOOLEAN, INT8, INT16, INT32, STRING, Array


class DescribeClusterRequest(Message, flexible="0+"):
    include_cluster_authorized_operations: bool = field(BOOLEAN)
    endpoint_type: int = field(INT8, versions="1+", default=1)


class DescribeClusterBroker(Message):
    broker_id: int = field(INT32)
    host: str = field(STRING)
    port: int = field(INT32)
    rack: str | None = field(STRING, nullable="0+", default=None)


class DescribeClusterResponse(Message, flexible="0+"):
    throttle_time_ms: int = field(INT32)
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, nullable="0+", default=None)
    endpoint_type: int = field(INT8, versions="1+", default=1)
    cluster_id: str = field(STRING)
    controller_id: int = field(INT32, default=-1)
    brokers: list[DescribeClusterBroker] = field(Array(DescribeClusterBroker))
    cluster_authorized_operations: int = field(INT32, default=-0x80000000)
