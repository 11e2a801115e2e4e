"""Produce requests, and what is filled by them."""

from __future__ import annotations

from barnabas.protocol.api import PRODUCE
from barnabas.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    TopicProduceData,
)
from tests.kit.raw_client import RawClient


def produce_request(topic: str, records: dict[int, bytes], acks: int = -1) -> ProduceRequest:
    data = [PartitionProduceData(index=index, records=each) for index, each in records.items()]
    return ProduceRequest(
        acks=acks, timeout_ms=60_000, topic_data=[TopicProduceData(name=topic, partition_data=data)]
    )


def produce(
    client: RawClient, topic: str, records: bytes, acks: int = -1, version: int = 9
) -> PartitionProduceResponse:
    answer = client.call(PRODUCE, version, produce_request(topic, {0: records}, acks))
    produced: PartitionProduceResponse = answer.responses[0].partition_responses[0]
    return produced


def fill(client: RawClient, topic: str, *batches: bytes) -> None:
    for each in batches:
        answer = client.call(PRODUCE, 9, produce_request(topic, {0: each}))
        assert answer.responses[0].partition_responses[0].error_code == 0
