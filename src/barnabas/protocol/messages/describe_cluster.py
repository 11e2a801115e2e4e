"""DescribeCluster (key 60): returns the cluster id, the controller and the brokers, but no topics.

In version 1, a request can ask for controllers instead of brokers (KIP-919). A cluster in ZooKeeper
mode rejects such a request.

Barnabas extends this API: if a request contains the tagged field 10000, the broker that answers
also returns its events. Other clients do not receive events, and other brokers skip the field
(KIP-482). Tags from 10000 up do not collide with Kafka's tags, which start at 0 (decision 38).
"""

from __future__ import annotations

from typing import Final

from barnabas.protocol.message import Message, field
from barnabas.protocol.wire import BOOLEAN, INT8, INT16, INT32, INT64, STRING, Array

EVENTS_TAG: Final = 10000
NO_EVENTS: Final = -1
"""In a request, this means that the client asks for no events. In a response, it means that the
broker reports no events.
"""


class DescribeClusterRequest(Message, flexible="0+"):
    include_cluster_authorized_operations: bool = field(BOOLEAN)
    endpoint_type: int = field(INT8, versions="1+", default=1)
    events_after: int = field(INT64, default=NO_EVENTS, tag=EVENTS_TAG, ignorable=True)
    """The sequence number of the last event that the client has received, or 0 if there is none."""


class DescribeClusterBroker(Message):
    broker_id: int = field(INT32)
    host: str = field(STRING)
    port: int = field(INT32)
    rack: str | None = field(STRING, nullable="0+", default=None)


class ClusterEvent(Message):
    """A decision of the broker that is visible to clients, with its cause."""

    sequence: int = field(INT64)
    at_ms: int = field(INT64)
    kind: str = field(STRING)
    is_warning: bool = field(BOOLEAN)
    topic: str = field(STRING)
    partition: int = field(INT32, default=-1)
    group: str = field(STRING)
    broker: int = field(INT32, default=-1)
    text: str = field(STRING)
    """The line in the broker's log for this event."""
    cause: str = field(STRING)
    harm: int = field(INT8, default=-1)
    """0: harmless; 1: clients notice it; -1: unknown."""
    advice: str = field(STRING)


class DescribeClusterResponse(Message, flexible="0+"):
    throttle_time_ms: int = field(INT32)
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, nullable="0+", default=None)
    endpoint_type: int = field(INT8, versions="1+", default=1)
    cluster_id: str = field(STRING)
    controller_id: int = field(INT32, default=-1)
    brokers: list[DescribeClusterBroker] = field(Array(DescribeClusterBroker))
    cluster_authorized_operations: int = field(INT32, default=-0x80000000)
    events: list[ClusterEvent] = field(Array(ClusterEvent), tag=EVENTS_TAG, ignorable=True)
    first_event: int = field(INT64, default=NO_EVENTS, tag=EVENTS_TAG + 1, ignorable=True)
    """The sequence number of the oldest event that the broker still has."""
    last_event: int = field(INT64, default=NO_EVENTS, tag=EVENTS_TAG + 2, ignorable=True)
    events_error: int = field(INT16, default=NO_EVENTS, tag=EVENTS_TAG + 3, ignorable=True)
    """An error code or 0, or -1 if the broker does not report events, like a Kafka broker."""
