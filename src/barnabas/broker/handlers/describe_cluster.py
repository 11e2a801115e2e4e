"""DescribeCluster (key 60): list the cluster's brokers and its controller (KIP-700)."""

from __future__ import annotations

from barnabas.broker.context import Context
from barnabas.broker.security.authorized_operations import authorized_operations
from barnabas.errors import UnsupportedEndpointType
from barnabas.protocol.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from barnabas.security.acl import CLUSTER_NAME, ResourceType

_BROKERS = 1  # endpoint type: brokers; 2 means KRaft controllers, which do not exist here


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
        # This is not an error: `barnabas cluster health` asks the controller for it.
        error_message="\n".join(context.node.controller.left_out) or None,
        cluster_id=image.cluster_id or "",
        controller_id=image.controller_id,
        brokers=brokers,
    )
    # KIP-430: 0 means that no operation is authorized; the smallest int32 means that the client
    # did not ask.
    if request.include_cluster_authorized_operations:
        operations = 0
        if context.is_allowed(CLUSTER_NAME):
            operations = authorized_operations(context, ResourceType.CLUSTER, CLUSTER_NAME)
        response.cluster_authorized_operations = operations
    return response
