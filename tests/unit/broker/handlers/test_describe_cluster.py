"""DescribeCluster: the brokers, the controller, the cluster id."""

from __future__ import annotations

import pytest

from barnabas.errors import UnsupportedEndpointType
from barnabas.protocol.api import DESCRIBE_CLUSTER
from barnabas.protocol.messages.describe_cluster import DescribeClusterRequest
from tests.kit.raw_client import RawClient


@pytest.mark.parametrize("version", range(DESCRIBE_CLUSTER.max_version + 1))
def test_one_broker_in_every_version(node, client: RawClient, version: int) -> None:
    answer = client.call(DESCRIBE_CLUSTER, version, DescribeClusterRequest())
    assert (answer.error_code, answer.controller_id) == (0, 0)
    assert len(answer.cluster_id) == 22
    (broker,) = answer.brokers
    assert (broker.broker_id, broker.host, broker.port) == (0, "127.0.0.1", node.port)


def test_there_are_no_kraft_controllers(client: RawClient) -> None:
    answer = client.call(DESCRIBE_CLUSTER, 1, DescribeClusterRequest(endpoint_type=2))
    assert answer.error_code == UnsupportedEndpointType.code


def test_operations_are_returned_on_request(client: RawClient) -> None:
    """KIP-430: the very number that a real broker without an authorizer returns."""
    for wanted, expected in ((False, -(1 << 31)), (True, 8096)):
        request = DescribeClusterRequest(include_cluster_authorized_operations=wanted)
        answer = client.call(DESCRIBE_CLUSTER, 1, request)
        assert answer.cluster_authorized_operations == expected
