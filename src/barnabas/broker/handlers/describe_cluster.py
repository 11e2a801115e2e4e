"""DescribeCluster (key 60): list the brokers of the cluster and name its controller (KIP-700)."""

from __future__ import annotations

from barnabas.broker.context import Context
from barnabas.broker.security.authorized_operations import authorized_operations
from barnabas.errors import NONE, ClusterAuthorizationFailed, UnsupportedEndpointType
from barnabas.events import Event
from barnabas.protocol.messages.describe_cluster import (
    NO_EVENTS,
    ClusterEvent,
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from barnabas.security.acl import CLUSTER_NAME, ResourceType

_MOST_EVENTS = 500
_BROKERS = 1  # endpoint type brokers; 2 means KRaft controllers, which do not exist here


def handle(context: Context, request: DescribeClusterRequest) -> DescribeClusterResponse:
    if request.endpoint_type != _BROKERS:
        return DescribeClusterResponse(
            error_code=UnsupportedEndpointType.code,
            error_message="this cluster has broker endpoints only",
            endpoint_type=request.endpoint_type,
        )
    image = context.node.image
    brokers = []
    for broker in image.brokers.values():
        host, port = context.address_of(broker)
        brokers.append(
            DescribeClusterBroker(
                broker_id=broker.broker_id, host=host, port=port, rack=broker.rack
            )
        )
    response = DescribeClusterResponse(
        # No error is returned for excluded brokers. `barnabas cluster health` asks the controller
        # for them.
        error_message="\n".join(context.node.controller.left_out) or None,
        cluster_id=image.cluster_id or "",
        controller_id=image.controller_id,
        brokers=brokers,
    )
    # KIP-430: 0 means that no operation is authorized, and the smallest int32 means that the client
    # did not ask for the operations.
    if request.include_cluster_authorized_operations:
        operations = 0
        if context.is_allowed(CLUSTER_NAME):
            operations = authorized_operations(context, ResourceType.CLUSTER, CLUSTER_NAME)
        response.cluster_authorized_operations = operations
    if request.events_after != NO_EVENTS:
        _add_events(context, request.events_after, response)
    return response


def _add_events(context: Context, after: int, response: DescribeClusterResponse) -> None:
    """Add the events of this broker that follow the event with the number `after` (IN-1)."""
    # Events name topics, groups and members, so reading them requires DESCRIBE on the cluster.
    if not context.is_allowed(CLUSTER_NAME):
        response.events_error = ClusterAuthorizationFailed.code
        return
    log = context.node.replicas.events
    response.events_error, response.first_event, response.last_event = NONE, log.first, log.last
    response.events = [_wire_event(each) for each in log.after(after, _MOST_EVENTS)]


def _wire_event(event: Event) -> ClusterEvent:
    return ClusterEvent(
        sequence=event.sequence,
        at_ms=event.at_ms,
        kind=event.kind,
        is_warning=event.is_warning,
        topic=event.topic,
        partition=event.partition,
        group=event.group,
        broker=event.broker,
        text=event.text,
        cause=event.cause,
        harm=-1 if event.is_harmless is None else int(not event.is_harmless),
        advice=event.advice,
    )
