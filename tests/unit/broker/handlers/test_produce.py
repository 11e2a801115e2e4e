"""Produce: acks, duplicates, gaps, bad batches; a failed partition does not fail its neighbour."""

from __future__ import annotations

import pytest

from barnabas.errors import (
    CorruptMessage,
    InvalidRecord,
    InvalidRequiredAcks,
    InvalidTopic,
    MessageTooLarge,
    OutOfOrderSequenceNumber,
    UnknownTopicOrPartition,
)
from barnabas.protocol.api import PRODUCE
from barnabas.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    TopicProduceData,
)
from tests.raw_client import RawClient, batch

VERSIONS = range(3, PRODUCE.max_version + 1)


def request(topic: str, records: dict[int, bytes], acks: int = -1) -> ProduceRequest:
    data = [PartitionProduceData(index=index, records=each) for index, each in records.items()]
    return ProduceRequest(
        acks=acks, timeout_ms=5000, topic_data=[TopicProduceData(name=topic, partition_data=data)]
    )


def produce(
    client: RawClient, topic: str, records: bytes, acks: int = -1, version: int = 9
) -> PartitionProduceResponse:
    answer = client.call(PRODUCE, version, request(topic, {0: records}, acks))
    return answer.responses[0].partition_responses[0]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("acks", [1, -1])
def test_offsets_are_dense_in_every_version(
    client: RawClient, topic: str, version: int, acks: int
) -> None:
    """PR-4, TP-2: each batch gets the next offsets of its partition."""
    first = produce(client, topic, batch(b"a", b"b"), acks, version)
    second = produce(client, topic, batch(b"c"), acks, version)
    assert (first.error_code, first.base_offset) == (0, 0)
    assert (second.error_code, second.base_offset) == (0, 2)
    assert first.log_append_time_ms == -1


@pytest.mark.parametrize("version", [0, 1, 2])
def test_versions_before_magic_2_close_the_connection(client: RawClient, version: int) -> None:
    """ST-5: advertised from 0 for old librdkafka, answered by closing."""
    header = b"\x00\x00" + version.to_bytes(2, "big") + b"\x00\x00\x00\x01\x00\x03raw"
    body = header + b"\x00\x01\x00\x00\x13\x88\x00\x00\x00\x00"
    client.send_bytes(len(body).to_bytes(4, "big") + body)
    assert client.is_closed_by_peer()


def test_acks_0_is_not_answered_and_is_written(client: RawClient, topic: str) -> None:
    """PR-4: the next answer on the connection belongs to the next request."""
    client.send(PRODUCE, 9, request(topic, {0: batch(b"a")}, acks=0))
    assert produce(client, topic, batch(b"b")).base_offset == 1


def test_acks_0_that_fails_closes_the_connection(client: RawClient) -> None:
    client.send(PRODUCE, 9, request("no-such-topic", {0: batch(b"a")}, acks=0))
    assert client.is_closed_by_peer()


def test_a_failed_partition_leaves_its_neighbour_alone(client: RawClient, topic: str) -> None:
    answer = client.call(PRODUCE, 9, request(topic, {0: batch(b"a"), 7: batch(b"b")}))
    good, bad = answer.responses[0].partition_responses
    assert (good.index, good.error_code, good.base_offset) == (0, 0, 0)
    assert (bad.index, bad.error_code) == (7, UnknownTopicOrPartition.code)
    assert bad.base_offset == -1 and "7" in (bad.error_message or "")


def test_a_batch_sent_again_is_answered_with_its_first_offset(
    client: RawClient, topic: str
) -> None:
    """PR-6: duplicates of a producer's last five batches are not stored again."""
    batches = [
        batch(b"%d" % n, producer_id=77, producer_epoch=0, base_sequence=n) for n in range(5)
    ]
    offsets = [produce(client, topic, each).base_offset for each in batches]
    again = [produce(client, topic, each) for each in batches]
    assert offsets == [0, 1, 2, 3, 4]
    assert [(each.error_code, each.base_offset) for each in again] == [(0, n) for n in range(5)]
    after = batch(b"5", producer_id=77, producer_epoch=0, base_sequence=5)
    assert produce(client, topic, after).base_offset == 5


def test_a_gap_in_the_sequence_is_refused(client: RawClient, topic: str) -> None:
    """PR-6"""
    first = batch(b"0", producer_id=78, producer_epoch=0, base_sequence=0)
    gap = batch(b"2", producer_id=78, producer_epoch=0, base_sequence=2)
    assert produce(client, topic, first).error_code == 0
    assert produce(client, topic, gap).error_code == OutOfOrderSequenceNumber.code


def _flip(records: bytes, position: int) -> bytes:
    return records[:position] + bytes([records[position] ^ 1]) + records[position + 1 :]


@pytest.mark.parametrize(
    ("records", "error"),
    [
        (_flip(batch(b"value"), 66), CorruptMessage),
        (batch(b"value")[:-1], CorruptMessage),
        (b"", InvalidRecord),
    ],
    ids=["crc", "cut", "empty"],
)
def test_bad_batches_are_refused(
    client: RawClient, topic: str, records: bytes, error: type[Exception]
) -> None:
    assert produce(client, topic, records).error_code == error.code
    assert produce(client, topic, batch(b"next")).base_offset == 0, "nothing was written"


def test_a_batch_above_max_message_bytes_is_refused(client: RawClient, topic: str) -> None:
    """PR-3: by the broker, MESSAGE_TOO_LARGE."""
    assert produce(client, topic, batch(bytes(1_100_000))).error_code == MessageTooLarge.code


def test_unknown_acks_are_refused(client: RawClient, topic: str) -> None:
    """PR-4"""
    assert produce(client, topic, batch(b"a"), acks=2).error_code == InvalidRequiredAcks.code


def test_clients_cannot_write_to_internal_topics(client: RawClient) -> None:
    """TP-8"""
    answer = produce(client, "__consumer_offsets", batch(b"a"))
    assert answer.error_code == InvalidTopic.code
