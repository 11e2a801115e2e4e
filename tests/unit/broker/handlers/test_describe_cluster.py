"""DescribeCluster: the brokers, the controller, the cluster id."""

from __future__ import annotations

import pytest

from barnabas import Broker
from barnabas.errors import ClusterAuthorizationFailed, UnsupportedEndpointType
from barnabas.events import Event
from barnabas.protocol.api import DESCRIBE_CLUSTER
from barnabas.protocol.messages.describe_cluster import NO_EVENTS, DescribeClusterRequest
from tests.kit.broker.acl_brokers import AUTHORIZER
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


def test_events_are_sent_only_on_request(node, client: RawClient) -> None:
    """IN-1: a client that does not send our tagged field gets none of ours."""
    log = node.server.parts.partitions.replicas.events
    log.add(Event("kind", "line", "why", topic="t", partition=3, is_harmless=True))
    plain = client.call(DESCRIBE_CLUSTER, 1, DescribeClusterRequest())
    assert (plain.events, plain.last_event, plain.events_error) == ([], NO_EVENTS, NO_EVENTS)
    answer = client.call(DESCRIBE_CLUSTER, 1, DescribeClusterRequest(events_after=0))
    assert (answer.events_error, answer.last_event) == (0, log.last)
    event = answer.events[-1]
    assert (event.kind, event.text, event.cause) == ("kind", "line", "why")
    assert (event.topic, event.partition, event.harm) == ("t", 3, 0)
    newer = client.call(DESCRIBE_CLUSTER, 1, DescribeClusterRequest(events_after=log.last))
    assert newer.events == []


def test_a_response_has_a_limited_number_of_events(node, client: RawClient) -> None:
    """IN-1: the rest is for the next request."""
    log = node.server.parts.partitions.replicas.events
    for number in range(700):
        log.add(Event("kind", str(number)))
    begun = log.last - 700
    first = client.call(DESCRIBE_CLUSTER, 1, DescribeClusterRequest(events_after=begun)).events
    assert [each.text for each in first] == [str(number) for number in range(500)]
    request = DescribeClusterRequest(events_after=first[-1].sequence)
    rest = client.call(DESCRIBE_CLUSTER, 1, request).events
    assert [each.text for each in rest] == [str(number) for number in range(500, 700)]


def test_events_need_describe_on_the_cluster() -> None:
    """IN-1: they name topics and groups; without the permission the response has no events."""
    with (
        Broker(config=AUTHORIZER) as closed,
        RawClient(closed.bootstrap_servers) as client,
        closed.admin() as admin,
    ):
        answer = client.call(DESCRIBE_CLUSTER, 1, DescribeClusterRequest(events_after=0))
        assert (answer.error_code, len(answer.brokers)) == (0, 1)
        assert (answer.events, answer.last_event) == ([], NO_EVENTS)
        assert answer.events_error == ClusterAuthorizationFailed.code
        with pytest.raises(ClusterAuthorizationFailed, match="reading the events of broker 0"):
            admin.events()
