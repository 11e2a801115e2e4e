"""Requests to a broker that does not lead the partition: the rows by which clients go elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

import barnabas
from barnabas.client import NewTopic, SyncAdmin
from barnabas.errors import (
    FencedLeaderEpoch,
    KafkaError,
    NotLeaderOrFollower,
    UnknownLeaderEpoch,
    UnknownTopicOrPartition,
)
from barnabas.protocol.api import (
    DELETE_RECORDS,
    FETCH,
    LIST_OFFSETS,
    OFFSET_FOR_LEADER_EPOCH,
    PRODUCE,
)
from barnabas.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from barnabas.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from barnabas.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from barnabas.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from barnabas.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from tests.kit.raw_client import RawClient, batch
from tests.kit.waiting import wait_until

EPOCH = 1  # after one election
Ask = Callable[[RawClient, str, int], int]
"""The error code for a topic's first partition, asked for in a leader epoch."""


def produce(client: RawClient, topic: str, _: int) -> int:
    data = PartitionProduceData(index=0, records=batch(b"x"))
    topics = [TopicProduceData(name=topic, partition_data=[data])]
    answer = client.call(PRODUCE, 9, ProduceRequest(acks=1, timeout_ms=1, topic_data=topics))
    code: int = answer.responses[0].partition_responses[0].error_code
    return code


def delete_records(client: RawClient, topic: str, _: int) -> int:
    wanted = DeleteRecordsPartition(partition_index=0, offset=0)
    topics = [DeleteRecordsTopic(name=topic, partitions=[wanted])]
    answer = client.call(DELETE_RECORDS, 2, DeleteRecordsRequest(topics=topics, timeout_ms=1))
    code: int = answer.topics[0].partitions[0].error_code
    return code


def list_offsets(client: RawClient, topic: str, epoch: int) -> int:
    wanted = ListOffsetsPartition(partition_index=0, timestamp=-1, current_leader_epoch=epoch)
    topics = [ListOffsetsTopic(name=topic, partitions=[wanted])]
    answer = client.call(LIST_OFFSETS, 7, ListOffsetsRequest(replica_id=-1, topics=topics))
    code: int = answer.topics[0].partitions[0].error_code
    return code


def fetch(client: RawClient, topic: str, epoch: int) -> int:
    wanted = FetchPartition(
        partition=0, current_leader_epoch=epoch, fetch_offset=0, partition_max_bytes=1_000
    )
    topics = [FetchTopic(topic=topic, partitions=[wanted])]
    answer = client.call(FETCH, 12, FetchRequest(replica_id=-1, max_bytes=1_000, topics=topics))
    code: int = answer.responses[0].partitions[0].error_code
    return code


def end_of_epoch(client: RawClient, topic: str, epoch: int) -> int:
    wanted = OffsetForLeaderPartition(partition=0, current_leader_epoch=epoch, leader_epoch=0)
    topics = [OffsetForLeaderTopic(topic=topic, partitions=[wanted])]
    request = OffsetForLeaderEpochRequest(replica_id=-1, topics=topics)
    code: int = client.call(OFFSET_FOR_LEADER_EPOCH, 4, request).topics[0].partitions[0].error_code
    return code


@pytest.fixture(scope="module")
def cluster() -> Iterator[barnabas.Cluster]:
    """Broker 1 leads `there`, of which broker 2 has no replica, and `here`, which it follows."""
    config = {"auto.leader.rebalance.enable": "false", "auto.create.topics.enable": "false"}
    with barnabas.Cluster(brokers=3, config=config) as cluster:
        with SyncAdmin(cluster.bootstrap_servers) as admin:
            topics = {"there": [3, 1], "here": [3, 1, 2]}
            admin.create_topics([NewTopic(name, assignment={0: topics[name]}) for name in topics])
        cluster.stop_broker(3)  # which moves the leadership, so that there is an older epoch

        def is_informed() -> bool:
            image = cluster.server(2).node.image.topics
            return all(name in image and image[name].partitions[0].leader == 1 for name in topics)

        wait_until(is_informed)
        yield cluster


@pytest.fixture
def follower(cluster: barnabas.Cluster) -> Iterator[RawClient]:
    with RawClient(f"127.0.0.1:{cluster.server(2).port}") as client:
        yield client


@pytest.mark.parametrize(
    "ask",
    [produce, delete_records, list_offsets, fetch, end_of_epoch],
    ids=lambda ask: ask.__name__,
)
def test_a_partition_of_others_is_no_unknown_one(follower: RawClient, ask: Ask) -> None:
    """PR-9: "unknown" would say that the topic is gone, and not that another broker leads."""
    assert ask(follower, "there", -1) == NotLeaderOrFollower.code
    assert ask(follower, "here", -1) == NotLeaderOrFollower.code
    assert ask(follower, "nowhere", -1) == UnknownTopicOrPartition.code


@pytest.mark.parametrize(
    ("epoch", "row"),
    [
        (EPOCH - 1, FencedLeaderEpoch),
        (EPOCH, NotLeaderOrFollower),
        (EPOCH + 1, UnknownLeaderEpoch),
    ],
)
@pytest.mark.parametrize("ask", [list_offsets, fetch, end_of_epoch], ids=lambda ask: ask.__name__)
def test_a_follower_judges_the_epoch_first(
    follower: RawClient, ask: Ask, epoch: int, row: type[KafkaError]
) -> None:
    """As Kafka does (KIP-320): an older epoch says that the client has to look again."""
    assert ask(follower, "here", epoch) == row.code
    assert ask(follower, "there", epoch) == NotLeaderOrFollower.code
