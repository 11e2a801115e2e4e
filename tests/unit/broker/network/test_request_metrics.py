"""Requests by API: how many, with which errors, and where their time went."""

from __future__ import annotations

from collections import defaultdict

from barnabas import Broker
from barnabas.broker.network.request_metrics import RequestMetrics, error_counter
from barnabas.metrics import Registry
from barnabas.protocol.api import (
    API_VERSIONS,
    CREATE_TOPICS,
    FETCH,
    JOIN_GROUP,
    METADATA,
    PRODUCE,
)
from barnabas.protocol.messages.api_versions import ApiVersionsRequest
from barnabas.protocol.messages.describe_groups import DescribeGroupsResponse
from barnabas.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchResponse,
    PartitionData,
)
from barnabas.protocol.messages.heartbeat import HeartbeatResponse
from barnabas.protocol.messages.sasl_authenticate import SaslAuthenticateResponse
from tests.kit.broker.fetches import fetch_request
from tests.kit.broker.metric_pages import page_of, samples, samples_of
from tests.kit.broker.produces import fill, produce_request
from tests.kit.broker.topics import create
from tests.kit.raw_client import RawClient, batch

REQUESTS = "kafka_network_requestmetrics_"
MS = 1_000_000


def total(found: dict[str, float], request: str) -> float:
    """The requests of all versions."""
    prefix = f'{REQUESTS}requests_total{{request="{request}",'
    return sum(value for name, value in found.items() if name.startswith(prefix))


# --- counted by a broker -------------------------------------------------------------------------


def test_in_3_requests_and_errors_by_api() -> None:
    """Requests that repeat each other are answered without their message, and count alike."""
    with Broker() as broker, RawClient(broker.bootstrap_servers) as client:
        create(client, "t")
        fill(client, "t", *[batch(b"a")] * 5)
        client.call(PRODUCE, 9, produce_request("t", {7: batch(b"a"), 8: batch(b"a")}))
        client.call(PRODUCE, 9, produce_request("t", {7: batch(b"a")}))
        client.call(FETCH, 11, fetch_request("t"))
        client.call(FETCH, 11, fetch_request("t", offset=9))
        client.call(FETCH, 11, fetch_request("t", replica_id=1))
        client.call(API_VERSIONS, 3, ApiVersionsRequest())
        found = samples_of(broker)
    assert found[f'{REQUESTS}requests_total{{request="Produce",version="9"}}'] == 7
    assert found[f'{REQUESTS}requests_total{{request="CreateTopics",version="5"}}'] == 1
    assert found[f'{REQUESTS}requests_total{{request="ApiVersions",version="3"}}'] == 1
    kinds = {"FetchConsumer": 2, "FetchFollower": 1, "Fetch": 3}
    assert {kind: total(found, kind) for kind in kinds} == kinds
    error = 'request="Produce",error="UNKNOWN_TOPIC_OR_PARTITION"'
    assert found[f"{REQUESTS}errors_total{{{error}}}"] == 3
    for kind in ("Fetch", "FetchConsumer"):
        error = f'request="{kind}",error="OFFSET_OUT_OF_RANGE"'
        assert found[f"{REQUESTS}errors_total{{{error}}}"] == 1
    for phase in ("total", "local", "remote", "requestqueue", "responsequeue", "responsesend"):
        assert found[f'{REQUESTS}{phase}timems_count{{request="Produce"}}'] == 7
        assert f'{REQUESTS}{phase}timems{{request="Produce",quantile="0.99"}}' in found
    local = found[f'{REQUESTS}localtimems_sum{{request="Produce"}}']
    assert 0 < local <= found[f'{REQUESTS}totaltimems_sum{{request="Produce"}}']


def test_in_3_a_long_poll_is_remote_time() -> None:
    with Broker() as broker, RawClient(broker.bootstrap_servers) as client:
        create(client, "t")
        client.call(FETCH, 11, fetch_request("t", max_wait_ms=300))
        found = samples_of(broker)
    label = '{request="FetchConsumer"}'
    assert found[f"{REQUESTS}remotetimems_sum{label}"] >= 290
    assert found[f"{REQUESTS}totaltimems_sum{label}"] >= 290
    assert found[f"{REQUESTS}localtimems_sum{label}"] < 290
    median = f'{REQUESTS}remotetimems{{request="FetchConsumer",quantile="0.50"}}'
    assert 240 < found[median] < 10_000


def test_in_3_each_wait_is_counted_where_there_is_one() -> None:
    """The total is their sum, and of most requests the local time alone."""
    registry = Registry()
    metrics = RequestMetrics(registry)
    metrics.of("Produce", 9).record((0, 2 * MS, 0, 300 * MS))
    metrics.of("Produce", 8).record((5 * MS, 2 * MS, 40 * MS, 0))
    metrics.of("Produce", 9).record((10, 1 * MS, 10, 10), requests=8)
    found = samples(page_of(registry))
    sums = {
        phase: found[f'{REQUESTS}{phase}timems_sum{{request="Produce"}}']
        for phase in ("total", "local", "remote", "requestqueue", "responsequeue")
    }
    assert sums == {
        "total": 302 + 47 + 8,
        "local": 12,
        "remote": 40,
        "requestqueue": 5,
        "responsequeue": 300,
    }
    assert found[f'{REQUESTS}totaltimems_count{{request="Produce"}}'] == 10
    # Nine of ten have not waited: their time in that queue is none.
    assert found[f'{REQUESTS}responsequeuetimems{{request="Produce",quantile="0.75"}}'] < 0.01
    assert found[f'{REQUESTS}responsequeuetimems{{request="Produce",quantile="0.95"}}'] > 200


def test_in_3_a_client_that_does_not_read_is_send_time() -> None:
    """Noted with its next request: of none of this connection's is anything read before."""
    with Broker() as broker, RawClient(broker.bootstrap_servers) as client:
        create(client, "t")
        fill(client, "t", *[batch(bytes(900_000))] * 40)
        request = fetch_request("t", partition_max_bytes=1 << 26, max_bytes=1 << 26)
        client.send(FETCH, 11, request)
        client.receive(FETCH, 11)
        client.call(API_VERSIONS, 3, ApiVersionsRequest())
        found = samples_of(broker)
    assert sum(value for name, value in found.items() if "responsesendtimems_sum" in name) > 0


# --- error codes in answers ----------------------------------------------------------------------


def test_error_codes_are_found_wherever_an_answer_has_them() -> None:
    errors: defaultdict[int, int] = defaultdict(int)
    fetch = FetchResponse(
        error_code=70,
        responses=[
            FetchableTopicResponse(
                partitions=[PartitionData(error_code=code) for code in (1, 0, 1)]
            ),
            FetchableTopicResponse(partitions=[PartitionData(error_code=6)]),
        ],
    )
    count = error_counter(FetchResponse)
    assert count is not None
    count(fetch, errors)
    assert errors == {70: 1, 1: 2, 6: 1}
    for answer in (HeartbeatResponse, SaslAuthenticateResponse, DescribeGroupsResponse):
        assert error_counter(answer) is not None
    for api in (CREATE_TOPICS, JOIN_GROUP, METADATA):
        assert error_counter(api.response) is not None
