"""Long requests leave the loop to others, and a connection keeps no more than its share (UX-4)."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import pytest

from barnabas import Broker
from barnabas.broker.context import Context
from barnabas.broker.network.client_connection import ClientConnection
from barnabas.broker.runtime.slices import SLICE_ENTRIES, Pace, Slices, in_slices, run_slices
from barnabas.protocol.api import (
    API_VERSIONS,
    APIS,
    DELETE_RECORDS,
    DESCRIBE_CONFIGS,
    DESCRIBE_GROUPS,
    DESCRIBE_PRODUCERS,
    DESCRIBE_TRANSACTIONS,
    FETCH,
    FIND_COORDINATOR,
    LIST_OFFSETS,
    METADATA,
    OFFSET_FOR_LEADER_EPOCH,
    PRODUCE,
    Api,
)
from barnabas.protocol.messages.api_versions import ApiVersionsRequest
from barnabas.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from barnabas.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from barnabas.protocol.messages.describe_groups import DescribeGroupsRequest
from barnabas.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersTopic,
)
from barnabas.protocol.messages.describe_transactions import DescribeTransactionsRequest
from barnabas.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest
from barnabas.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from barnabas.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from barnabas.security.acl import ANONYMOUS
from tests.kit.broker.fetches import fetch_request
from tests.kit.broker.loops import inside
from tests.kit.broker.produces import produce
from tests.kit.raw_client import RawClient, batch
from tests.kit.waiting import wait_until

COUNT = 10_000
NUMBERS = range(COUNT)

LONG: dict[Api, tuple[int, Callable[[], Any]]] = {
    METADATA: (
        9,
        lambda: MetadataRequest(
            topics=[MetadataRequestTopic(name=f"no-{i}") for i in NUMBERS],
            allow_auto_topic_creation=False,
        ),
    ),
    FETCH: (
        11,
        lambda: FetchRequest(
            replica_id=-1,
            topics=[FetchTopic(topic="no", partitions=[FetchPartition(partition=i)])
                    for i in NUMBERS],
        ),
    ),
    LIST_OFFSETS: (
        7,
        lambda: ListOffsetsRequest(
            replica_id=-1,
            topics=[ListOffsetsTopic(
                name="no", partitions=[ListOffsetsPartition(partition_index=i) for i in NUMBERS],
            )],
        ),
    ),
    OFFSET_FOR_LEADER_EPOCH: (
        3,
        lambda: OffsetForLeaderEpochRequest(
            topics=[OffsetForLeaderTopic(
                topic="no", partitions=[OffsetForLeaderPartition(partition=i) for i in NUMBERS],
            )],
        ),
    ),
    DELETE_RECORDS: (
        2,
        lambda: DeleteRecordsRequest(
            topics=[DeleteRecordsTopic(
                name="no",
                partitions=[DeleteRecordsPartition(partition_index=i) for i in NUMBERS],
            )],
        ),
    ),
    DESCRIBE_CONFIGS: (
        4,
        lambda: DescribeConfigsRequest(
            resources=[DescribeConfigsResource(resource_type=2, resource_name=f"no-{i}")
                       for i in NUMBERS],
        ),
    ),
    DESCRIBE_PRODUCERS: (
        0,
        lambda: DescribeProducersRequest(
            topics=[DescribeProducersTopic(name="no", partition_indexes=list(NUMBERS))],
        ),
    ),
    DESCRIBE_GROUPS: (5, lambda: DescribeGroupsRequest(groups=[f"no-{i}" for i in NUMBERS])),
    DESCRIBE_TRANSACTIONS: (
        0, lambda: DescribeTransactionsRequest(transactional_ids=[f"no-{i}" for i in NUMBERS]),
    ),
    FIND_COORDINATOR: (
        4,
        lambda: FindCoordinatorRequest(
            key_type=5, coordinator_keys=[f"no-{i}" for i in NUMBERS]
        ),
    ),
}  # fmt: skip


def test_entries_that_may_be_awaited_give_way_as_well() -> None:
    """Between two slices the loop has a turn, even if no entry waits for anything."""
    turns = 0

    async def work() -> int:
        nonlocal turns
        worked = 0
        async for _ in in_slices(NUMBERS):
            worked += 1
        return worked

    working = work()
    with pytest.raises(StopIteration, match=str(COUNT)):
        while working.send(None) is None:
            turns += 1
    assert turns == COUNT // SLICE_ENTRIES


def carried_out(node: Broker, api: Api, version: int, request: Any) -> tuple[int, Any]:
    """In how many slices a request is carried out, and what comes of it."""
    handle = import_module(f"barnabas.broker.handlers.{api.stem}").handle

    def run() -> tuple[int, Any]:
        caller = ClientConnection("PLAINTEXT", ANONYMOUS, "127.0.0.1", "127.0.0.1")
        outcome = handle(Context(node.server.node, caller, api, version, "t"), request)
        slices = 1
        try:
            while hasattr(outcome, "send"):
                assert outcome.send(None) is None, "it waits for something else than its turn"
                slices += 1
        except StopIteration as end:
            outcome = end.value
        return slices, outcome

    return inside(node, run)


@pytest.mark.parametrize("api", LONG, ids=lambda api: api.stem)
def test_a_long_list_is_worked_through_in_slices(node: Broker, api: Api) -> None:
    version, build = LONG[api]
    slices, _ = carried_out(node, api, version, build())
    assert slices >= COUNT // SLICE_ENTRIES


def test_a_partition_named_often_is_read_once(node: Broker, client: RawClient, topic: str) -> None:
    """As in Kafka: where it stood first, as it was said last."""
    produce(client, topic, batch(b"a"))
    produce(client, topic, batch(b"b"))
    named = [
        FetchTopic(
            topic=topic,
            partitions=[
                FetchPartition(partition=i % 2, fetch_offset=0, partition_max_bytes=1 << 20)
                for i in range(100)
            ],
        )
        for _ in range(100)
    ]
    named[-1].partitions[-2].fetch_offset = 1
    for epoch in (-1, 0):
        wanted = FetchRequest(
            replica_id=-1, max_bytes=1 << 20, session_epoch=epoch, topics=list(named)
        )
        answer = client.call(FETCH, 11, wanted)
        rows = [each for topic in answer.responses for each in topic.partitions]
        assert [each.partition_index for each in rows] == [0, 1]
        assert bytes(rows[0].records)[:8] == (1).to_bytes(8, "big")


def test_a_short_list_is_answered_at_once(node: Broker) -> None:
    few = MetadataRequest(topics=[MetadataRequestTopic(name="no")], allow_auto_topic_creation=False)
    assert carried_out(node, METADATA, 9, few)[0] == 1


@pytest.mark.thorough
@pytest.mark.parametrize("count", [1_500, 60_000])
def test_answers_of_long_requests_keep_their_order(node: Broker, count: int) -> None:
    """With the larger ones their decoding is a thread's business; the order is the same."""
    names = [MetadataRequestTopic(name=f"unknown-{i}") for i in range(count)]
    long = MetadataRequest(topics=names, allow_auto_topic_creation=False)
    with RawClient(node.bootstrap_servers) as client:
        for _ in range(2):
            client.send(METADATA, 9, long)
            client.send(API_VERSIONS, 0, ApiVersionsRequest())
        for _ in range(2):
            assert len(client.receive(METADATA, 9)[1].topics) == count
            assert client.receive(API_VERSIONS, 0)[1].error_code == 0


def test_what_does_not_parse_closes_its_connection(node: Broker) -> None:
    with RawClient(node.bootstrap_servers) as client:
        header = METADATA.key.to_bytes(2, "big") + b"\x00\x08" + bytes(4) + b"\x00\x01x"
        body = header + b"\x7f\xff\xff\xff" + b"\xff" * 100_000
        client.send_bytes(len(body).to_bytes(4, "big") + body)
        assert client.is_closed_by_peer()


def test_one_long_request_of_a_connection_is_taken_apart_at_a_time(
    node: Broker, client: RawClient, topic: str
) -> None:
    """Sixty-four would be a gigabyte: behind one that waits, none is begun."""
    wait = fetch_request(topic, max_wait_ms=60_000, min_bytes=1)
    wait.topics[0].partitions *= 20_000
    for _ in range(4):
        client.send(FETCH, 11, wait)  # what is not read waits in the sockets' buffers

    def owed() -> tuple[int, int]:
        channels = [
            each for router in node.server.parts.network.routers for each in router._queues.values()
        ]
        fullest = max((each for each in channels if each), key=lambda each: each._kept_bytes)
        return fullest._kept_bytes, len(fullest._slots)

    wait_until(lambda: inside(node, owed)[0] > 0)
    with RawClient(node.bootstrap_servers) as other:
        for _ in range(20):  # in each of whose turns the next one could have been read
            other.call(API_VERSIONS, 0, ApiVersionsRequest())
    assert inside(node, owed)[1] == 1
    with RawClient(node.bootstrap_servers) as other:
        produce(other, topic, batch(b"a"))
    for _ in range(4):
        assert client.receive(FETCH, 11)[1].responses[0].partitions[0].records


class TestPace:
    def test_a_slice_is_over_when_it_was_long_enough(self) -> None:
        pace = Pace()
        assert [pace.is_over() for _ in range(SLICE_ENTRIES)].count(True) == 1
        assert pace.is_over(SLICE_ENTRIES + 5)
        assert not pace.is_over(0)

    def test_what_is_interrupted_is_ended(self) -> None:
        ended = []

        def steps() -> Slices[None]:
            try:
                yield
                yield
            finally:
                ended.append(True)

        rest = run_slices(steps())
        assert rest is not None
        rest.send(None)
        rest.close()
        assert ended == [True]


def test_all_apis_with_lists_are_known() -> None:
    """A new API that works through a list is run_slices, or stands here for a reason."""
    carried_out_whole = {
        # One append, or one decision of the machine, for all that is named.
        "add_partitions_to_txn", "delete_groups", "join_group", "leave_group", "offset_commit",
        "offset_delete", "offset_fetch", "sync_group", "txn_offset_commit", "write_txn_markers",
        # Plans of the controller, made and committed as one.
        "alter_configs", "alter_partition", "alter_partition_reassignments", "create_partitions",
        "create_topics", "delete_topics", "elect_leaders", "incremental_alter_configs",
        "list_partition_reassignments",
        # Of brokers.
        "controlled_shutdown", "leader_and_isr", "stop_replica", "update_metadata",
        "allocate_producer_ids",
        # Their lists are filters, and are looked at once.
        "api_versions", "describe_log_dirs", "list_groups", "list_transactions",
        # Single users, rules and tokens of an administrator.
        "alter_client_quotas", "describe_client_quotas",
        "alter_user_scram_credentials", "create_acls", "create_delegation_token", "delete_acls",
        "describe_acls", "describe_delegation_token", "describe_user_scram_credentials",
        "expire_delegation_token", "renew_delegation_token", "sasl_authenticate", "sasl_handshake",
        # The loop has a turn before each of its partitions.
        "alter_replica_log_dirs",
        # No lists.
        "add_offsets_to_txn", "describe_cluster", "end_txn", "heartbeat", "init_producer_id",
    }  # fmt: skip
    known = {api.stem for api in LONG} | carried_out_whole | {PRODUCE.stem}
    assert {api.stem for api in APIS.values()} <= known
