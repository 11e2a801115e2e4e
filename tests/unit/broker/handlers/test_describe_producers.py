"""DescribeProducers: what a partition remembers of producers (KIP-664)."""

from __future__ import annotations

from typing import Any

from barnabas.errors import UnknownTopicOrPartition
from barnabas.protocol.api import DESCRIBE_PRODUCERS, PRODUCE
from barnabas.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersTopic,
)
from barnabas.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from tests.kit.broker.transactional import write_marker
from tests.kit.raw_client import RawClient, batch


def ask(client: RawClient, topic: str, *partitions: int) -> Any:
    wanted = DescribeProducersTopic(name=topic, partition_indexes=list(partitions))
    answer: Any = client.call(DESCRIBE_PRODUCERS, 0, DescribeProducersRequest(topics=[wanted]))
    (found,) = answer.topics
    assert found.name == topic
    return found.partitions


def test_a_producer_and_one_with_a_marker(client: RawClient, topic: str) -> None:
    records = batch(b"a", b"b", producer_id=70, producer_epoch=2, base_sequence=0)
    data = TopicProduceData(
        name=topic, partition_data=[PartitionProduceData(index=0, records=records)]
    )
    client.call(PRODUCE, 9, ProduceRequest(acks=-1, timeout_ms=60_000, topic_data=[data]))
    write_marker(client, topic, (71, 1), 3)
    (partition,) = ask(client, topic, 0)
    one, other = partition.active_producers
    assert (one.producer_id, one.producer_epoch, one.last_sequence) == (70, 2, 1)
    assert (one.last_timestamp, one.coordinator_epoch) == (1_700_000_000_001, -1)
    assert one.current_txn_start_offset == -1
    assert (other.producer_id, other.producer_epoch, other.last_sequence) == (71, 1, -1)
    assert other.coordinator_epoch == 3


def test_each_partition_has_its_own_answer(client: RawClient, topic: str) -> None:
    empty, unknown = ask(client, topic, 0, 2)
    assert (empty.error_code, empty.active_producers) == (0, [])
    assert unknown.error_code == UnknownTopicOrPartition.code
    assert unknown.error_message
    (nowhere,) = ask(client, "no-such-topic", 0)
    assert nowhere.error_code == UnknownTopicOrPartition.code


def test_a_partition_named_twice_is_described_once(client: RawClient, topic: str) -> None:
    wanted = [
        DescribeProducersTopic(name=topic, partition_indexes=numbers)
        for numbers in ([0, 0, 1], [1])
    ]
    answer = client.call(DESCRIBE_PRODUCERS, 0, DescribeProducersRequest(topics=wanted))
    (found,) = answer.topics
    assert [one.partition_index for one in found.partitions] == [0, 1]
