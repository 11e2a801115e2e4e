"""The router against bad frames: an answer or a closed connection, and no one else notices."""

from __future__ import annotations

import asyncio
import gc
import logging
import struct
import threading

import pytest

from barnabas import Broker
from barnabas.broker.context import Context
from barnabas.broker.network.request_metrics import RequestTimes
from barnabas.broker.network.router import Route
from barnabas.broker.outcome import Hold, Outcome
from barnabas.broker.security.authorization import REQUIRED
from barnabas.errors import UnknownMemberId, UnknownTopicOrPartition
from barnabas.protocol.api import (
    API_VERSIONS,
    APIS,
    DESCRIBE_CLUSTER,
    FIND_COORDINATOR,
    JOIN_GROUP,
    METADATA,
    OFFSET_COMMIT,
    PRODUCE,
    SYNC_GROUP,
)
from barnabas.protocol.codec import decoder
from barnabas.protocol.frame import encode_request
from barnabas.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from barnabas.protocol.messages.describe_cluster import (
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest
from barnabas.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from barnabas.protocol.messages.metadata import MetadataRequest
from barnabas.protocol.messages.offset_commit import (
    OffsetCommitPartition,
    OffsetCommitRequest,
    OffsetCommitTopic,
)
from barnabas.protocol.messages.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from barnabas.protocol.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)
from tests.kit.broker.authorizers import authorized_by
from tests.kit.broker.produces import produce_request
from tests.kit.raw_client import PATIENCE_S, RawClient, batch, once_found
from tests.kit.waiting import wait_until


def framed(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


def header(key: int, version: int) -> bytes:
    return struct.pack(">hhih", key, version, 1, 3) + b"raw"


@pytest.mark.parametrize(
    "data",
    [
        struct.pack(">i", -5),
        struct.pack(">i", 0x7FFFFFFF),
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        framed(b""),
        framed(b"\x00"),
        framed(header(3, 9)[:9]),
        framed(header(999, 0)),
        framed(header(3, 99)),
        framed(header(-1, -1)),
        framed(header(3, 1) + b"\x7f\xff\xff\xff"),
        framed(header(3, 1) + b"\x00\x00\x00\x01\x00\x05ab"),
    ],
    ids=[
        "negative-length",
        "huge-length",
        "http",
        "empty",
        "one-byte",
        "cut-header",
        "unknown-key",
        "unknown-version",
        "negative-key",
        "huge-array",
        "cut-string",
    ],
)
def test_a_bad_frame_closes_its_connection_and_no_other(node: Broker, data: bytes) -> None:
    """UX-4"""
    with RawClient(node.bootstrap_servers) as good, RawClient(node.bootstrap_servers) as bad:
        bad.send_bytes(data)
        assert bad.is_closed_by_peer()
        assert good.call(METADATA, 9, MetadataRequest(topics=[])).brokers


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (framed(b""), "it sent an empty frame (length 0)"),
        (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "it speaks HTTP on a port for Kafka's"),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "it speaks HTTP on a port for Kafka's"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "it uses TLS on a listener without TLS"),
    ],
    ids=["empty", "http", "http-2", "tls"],
)
def test_what_is_no_request_is_named_once(
    data: bytes, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    """UX-4: the log says what came instead, and does not fill when it comes again and again."""
    with Broker() as broker:
        for _ in range(5):
            with RawClient(broker.bootstrap_servers) as bad:
                bad.send_bytes(data)
                assert bad.is_closed_by_peer()
        wait_until(lambda: reason in caplog.text)
    lines = [each.getMessage() for each in caplog.records if reason in each.getMessage()]
    assert len(lines) == 1
    assert lines[0].startswith("connection closed from 127.0.0.1:")


def test_bytes_behind_a_request_are_ignored(client: RawClient) -> None:
    """As Kafka does; librdkafka's Metadata request has three bytes too many."""
    client.send_bytes(framed(header(3, 1) + b"\xff\xff\xff\xff" + b"abc"))
    assert client.receive(METADATA, 1)[1].brokers


def test_what_came_before_a_bad_frame_is_answered(client: RawClient) -> None:
    client.send(API_VERSIONS, 0, ApiVersionsRequest())
    client.send_bytes(framed(header(999, 0)))
    assert client.receive(API_VERSIONS, 0)[1].error_code == 0
    assert client.is_closed_by_peer()


def test_a_thousand_requests_on_one_connection_are_answered_in_order(client: RawClient) -> None:
    sent = [client.send(METADATA, 9, MetadataRequest(topics=[])) for _ in range(1000)]
    assert [client.receive(METADATA, 9)[0] for _ in sent] == sent


def test_every_api_says_what_it_needs() -> None:
    """SE-1: one table, no API left out."""
    assert set(REQUIRED) == {api.stem for api in APIS.values()}


def test_requests_carry_who_asks(node: Broker) -> None:
    """SE-1: principal, listener and client address reach the authorizer, with what is needed."""
    asked: list[tuple[str, str, str, str]] = []

    class Recording:
        def allows(self, principal, client_address, needs, resource_name):  # type: ignore[no-untyped-def]
            asked.append((str(principal), client_address, needs.operation.name, resource_name))
            return resource_name != "hidden"

    with authorized_by(Recording()), RawClient(node.bootstrap_servers) as client:
        from barnabas.errors import TopicAuthorizationFailed
        from barnabas.protocol.messages.metadata import MetadataRequestTopic

        wanted = [MetadataRequestTopic(name="hidden")]
        answer = client.call(
            METADATA, 9, MetadataRequest(topics=wanted, allow_auto_topic_creation=False)
        )
        assert answer.topics[0].error_code == TopicAuthorizationFailed.code
    assert ("User:ANONYMOUS", "127.0.0.1", "DESCRIBE", "hidden") in asked


def test_a_hold_keeps_the_next_request_of_its_connection_back(node: Broker) -> None:
    """What is awaited before an append must not be overtaken by the next one."""
    routes = node.server.parts.network.routers[0]._routes
    order: list[str] = []
    may_go_on = threading.Event()

    async def held() -> DescribeClusterResponse:
        while not may_go_on.is_set():
            await asyncio.sleep(0.001)
        order.append("held")
        return DescribeClusterResponse()

    def hold(context: Context, request: DescribeClusterRequest) -> Outcome:
        return Hold(held())

    def follow(context: Context, request: ApiVersionsRequest) -> Outcome:
        order.append("next")
        return ApiVersionsResponse()

    routes.clear()
    routes[DESCRIBE_CLUSTER.key, 1] = Route(
        DESCRIBE_CLUSTER, decoder(DescribeClusterRequest, 1), hold, RequestTimes()
    )
    routes[API_VERSIONS.key, 0] = Route(
        API_VERSIONS, decoder(ApiVersionsRequest, 0), follow, RequestTimes()
    )
    try:
        with (
            RawClient(node.bootstrap_servers) as client,
            RawClient(node.bootstrap_servers) as other,
        ):
            client.send(DESCRIBE_CLUSTER, 1, DescribeClusterRequest())
            client.send(API_VERSIONS, 0, ApiVersionsRequest())
            other.call(API_VERSIONS, 0, ApiVersionsRequest())
            assert order == ["next"], "another connection goes on, this one's next does not"
            may_go_on.set()
            client.receive(DESCRIBE_CLUSTER, 1)
            client.receive(API_VERSIONS, 0)
    finally:
        routes.clear()
    assert order == ["next", "held", "next"]


def test_an_answer_that_comes_as_its_connection_closes_is_dropped(
    node: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    """As from `asyncio.wait_for`, which in Python 3.11 returns what is there instead of ending."""
    routes = node.server.parts.network.routers[0]._routes
    begun, ended = threading.Event(), threading.Event()

    async def late() -> DescribeClusterResponse:
        begun.set()
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            asyncio.get_running_loop().call_soon(ended.set)
        return DescribeClusterResponse()

    def wait(context: Context, request: DescribeClusterRequest) -> Outcome:
        return late()

    routes.clear()
    routes[DESCRIBE_CLUSTER.key, 1] = Route(
        DESCRIBE_CLUSTER, decoder(DescribeClusterRequest, 1), wait, RequestTimes()
    )
    try:
        with RawClient(node.bootstrap_servers) as client:
            client.send(DESCRIBE_CLUSTER, 1, DescribeClusterRequest())
            assert begun.wait(PATIENCE_S)
        assert ended.wait(PATIENCE_S)
    finally:
        routes.clear()
    assert not [each for each in caplog.records if each.levelno >= logging.ERROR]


def test_a_wait_that_never_begins_leaves_no_coroutine_unawaited(
    node: Broker, recwarn: pytest.WarningsRecorder
) -> None:
    """The connection closes in the turn of the loop in which the waiting was to begin."""
    routes = node.server.parts.network.routers[0]._routes
    begun: list[str] = []

    async def for_ever() -> ProduceResponse:
        begun.append("waiting")
        await asyncio.sleep(3600)
        return ProduceResponse()

    def wait(context: Context, request: ProduceRequest) -> Outcome:
        return for_ever()

    routes.clear()
    routes[PRODUCE.key, 9] = Route(PRODUCE, decoder(ProduceRequest, 9), wait, RequestTimes())
    parts = encode_request(PRODUCE, 9, 1, "raw", produce_request("t", {0: batch(b"x")}))
    try:
        with RawClient(node.bootstrap_servers) as client:
            client.send_bytes(b"".join(map(bytes, parts)) + struct.pack(">i", -5))
            assert client.is_closed_by_peer()
    finally:
        routes.clear()
    gc.collect()
    assert begun == []
    assert not [each for each in recwarn if "never awaited" in str(each.message)]


def test_every_request_may_be_as_large_as_a_frame(node: Broker) -> None:
    """`socket.request.max.bytes` alone says what is too large, as in Kafka."""
    with RawClient(node.bootstrap_servers) as client:
        find = FindCoordinatorRequest(key="g")
        once_found(lambda: client.call(FIND_COORDINATOR, 3, find))
        assignment = SyncGroupRequestAssignment(member_id="m", assignment=bytes(5_000_000))
        request = SyncGroupRequest(group_id="g", member_id="m", assignments=[assignment])
        answer = client.call(SYNC_GROUP, 3, request)
        assert answer.error_code == UnknownMemberId.code
        partitions = [
            OffsetCommitPartition(
                partition_index=index, committed_offset=1, committed_metadata="m" * 1000
            )
            for index in range(5000)
        ]
        topic = OffsetCommitTopic(name="absent", partitions=partitions)
        commit = OffsetCommitRequest(group_id="g", topics=[topic])
        rows = client.call(OFFSET_COMMIT, 7, commit).topics[0].partitions
        assert {row.error_code for row in rows} == {UnknownTopicOrPartition.code}
        assert len(rows) == 5000


def test_what_is_kept_of_a_request_does_not_keep_its_receive_buffer(node: Broker) -> None:
    """A group keeps its members' subscriptions, which lay in a buffer of 256 KiB each."""
    routes = node.server.parts.network.routers[0]._routes
    kept: list[memoryview] = []

    def keep(context: Context, request: JoinGroupRequest) -> Outcome:
        kept.extend(memoryview(protocol.metadata) for protocol in request.protocols)
        return JoinGroupResponse(protocol_name="", leader="", member_id="")

    routes.clear()
    routes[JOIN_GROUP.key, 4] = Route(
        JOIN_GROUP, decoder(JoinGroupRequest, 4), keep, RequestTimes()
    )
    protocol = JoinGroupRequestProtocol(name="range", metadata=b"subscribed")
    request = JoinGroupRequest(
        group_id="g",
        session_timeout_ms=6000,
        member_id="",
        protocol_type="consumer",
        protocols=[protocol],
    )
    try:
        with RawClient(node.bootstrap_servers) as client:
            client.call(JOIN_GROUP, 4, request)
    finally:
        routes.clear()
    (metadata,) = kept
    assert bytes(metadata) == b"subscribed"
    assert isinstance(metadata.obj, bytes)
    assert len(metadata.obj) < 1000


def test_answers_that_wait_behind_another_are_bounded_by_their_bytes(node: Broker) -> None:
    """UX-4: a client that pipelines fills neither the broker's memory nor, by it, others' time."""
    router = node.server.parts.network.routers[0]
    may_go_on = threading.Event()
    handled: list[int] = []
    refused = ProduceResponse(
        responses=[
            TopicProduceResponse(
                name="t", partition_responses=[PartitionProduceResponse(error_message="x" * 30_000)]
            )
        ]
    )

    async def first() -> ProduceResponse:
        while not may_go_on.is_set():
            await asyncio.sleep(0.001)
        return refused

    def handle(context: Context, request: ProduceRequest) -> Outcome:
        handled.append(1)
        return first() if len(handled) == 1 else refused

    two = produce_request("t", {0: batch(b"x"), 1: batch(b"y")})  # so it is not one that repeats
    count, most = 3 * 40, 1 + (1 << 20) // 30_000 + 1
    router._routes[PRODUCE.key, 9] = Route(
        PRODUCE, decoder(ProduceRequest, 9), handle, RequestTimes()
    )
    try:
        with RawClient(node.bootstrap_servers) as client:
            for _ in range(count):
                client.send(PRODUCE, 9, two)
            wait_until(lambda: len(handled) > 30)
            with RawClient(node.bootstrap_servers) as other:
                for _ in range(20):  # in each of whose turns the next one could have been read
                    other.call(API_VERSIONS, 0, ApiVersionsRequest())
            assert len(handled) <= most
            may_go_on.set()
            for _ in range(count):
                assert client.receive(PRODUCE, 9)[1] == refused
    finally:
        router._routes.clear()
    assert len(handled) == count
